"""What a process uses of a core between two steps, from a tenth of a second after the first on.

Alone, a process sleeps until it is woken: under 1%. A rank that waits for messages looks for them every
few milliseconds, and each look costs tens of microseconds: under 2%.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support  # noqa: E402

IDLE = os.environ["IDLE"]
SETTLE_SECONDS = 0.1
SECONDS = 3
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")  # in which the system counts


class Idle(unittest.TestCase):
    def graph(self, ranks):
        """A file with a sum that is made on the last rank of what the first one sends."""
        last = f"/job:worker/task:{ranks - 1}"
        nodes = [{"name": "a", "op": "Const", "attr": {"value": 1.0}, "device": "/job:worker/task:0"},
                 {"name": "b", "op": "Const", "attr": {"value": 2.0}, "device": last},
                 {"name": "sum", "op": "Add", "input": ["a", "b"], "device": last}]
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({"node": nodes}, file)
        self.addCleanup(os.unlink, file.name)
        return file.name

    def start(self, ranks, workers):
        arguments = [IDLE, self.graph(ranks), "sum", str(workers)]
        launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
        process = subprocess.Popen(launcher + arguments, cwd=support.ROOT,
                                   env=support.environment(ranks), text=True, bufsize=1,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def step(self, process):
        process.stdin.write("step\n")
        self.assertEqual(process.stdout.readline(), "3.0\n")

    def check(self, ranks, workers, share):
        process = self.start(ranks, workers)
        for _ in range(10):
            self.step(process)
        pids = [process.pid] if ranks == 1 else support.children(process.pid)
        self.assertEqual(len(pids), ranks)
        time.sleep(SETTLE_SECONDS)
        before = [support.cpu_seconds(pid) for pid in pids]
        time.sleep(SECONDS)
        used = [support.cpu_seconds(pid) - was for pid, was in zip(pids, before)]
        print(f"{ranks} ranks, {workers} workers: {[round(x, 2) for x in used]} s of {SECONDS} s")
        for rank, seconds in enumerate(used):
            self.assertLessEqual(seconds, share * SECONDS + TICK_SECONDS, f"process {rank}")
        self.step(process)  # they are idle, not gone
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 0)

    def test_alone(self):
        self.check(1, 1, 0.01)
        self.check(1, 4, 0.01)

    def test_ranks(self):
        self.check(4, 1, 0.01)

    def test_ranks_with_workers(self):
        self.check(2, 2, 0.01)


if __name__ == "__main__":
    unittest.main()
