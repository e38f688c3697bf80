"""Ranks that are killed, Ctrl-C, and a rank with nothing to do."""
import os
import signal
import time
import unittest

import support

LONG = ["run", "examples/fashion_mnist_mlp.json", "--steps", "1000000"]
SECONDS = 10


class Ending(support.Case):
    def start_training(self, ranks):
        """A job in mid-training: (process, the processes of its ranks)."""
        arguments = LONG + (["--strategy", "data-parallel"] if ranks > 0 else [])
        process = support.start(*arguments, ranks=ranks, start_new_session=True)
        self.addCleanup(self.end, process)
        line = support.wait_for_line(process.stderr, "^train  step", 60)
        self.assertIsNotNone(line, "training did not start")
        pids = [process.pid] if ranks == 0 else support.children(process.pid)
        self.assertEqual(len(pids), max(ranks, 1))
        return process, pids

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.stderr.close()
        process.wait()

    def finish(self, process, pids):
        """The job ends in time and leaves no process: its standard error."""
        start = time.monotonic()
        _, errors = process.communicate(timeout=SECONDS)
        left = SECONDS - (time.monotonic() - start)
        self.assertTrue(support.wait_for(lambda: not any(map(support.is_alive, pids)), left),
                        "a rank is left")
        return errors

    def test_kill_a_rank(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                process, pids = self.start_training(4)
                os.kill(pids[victim], signal.SIGKILL)
                errors = self.finish(process, pids)
                self.assertNotEqual(process.returncode, 0)
                self.assertRegex(errors, r"rank \d|signal 9|Killed")

    def test_interrupt_ranks(self):
        process, pids = self.start_training(4)
        process.send_signal(signal.SIGINT)
        errors = self.finish(process, pids)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(errors, r"troupe: interrupted at step \d+\n")

    def test_interrupt_alone(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process, pids = self.start_training(0)
            process.send_signal(number)
            errors = self.finish(process, pids)
            self.assertEqual(process.returncode, status)
            self.assertRegex(errors, r"(?m)^troupe: interrupted at step \d+$")

    def is_rank_zero(self, pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"OMPI_COMM_WORLD_RANK=0" in file.read().split(b"\0")

    def test_idle(self):
        """With rank 0 halted the other rank has nothing to do, and uses under 2% of a core."""
        process, pids = self.start_training(2)
        zero = next(pid for pid in pids if self.is_rank_zero(pid))
        other = next(pid for pid in pids if pid != zero)
        os.kill(zero, signal.SIGSTOP)
        try:
            time.sleep(1)
            before = support.cpu_seconds(other)
            time.sleep(4)
            used = support.cpu_seconds(other) - before
        finally:
            os.kill(zero, signal.SIGCONT)
        self.assertLess(used, 0.02 * 4 + 0.01)  # a tick of the clock is 0.01 s


if __name__ == "__main__":
    unittest.main()
