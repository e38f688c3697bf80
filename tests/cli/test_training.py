"""Training: the same loss on 1, 2 and 4 ranks, bit-identical repeats, placements by hand."""
import re
import unittest

import support

MLP = ["run", "examples/fashion_mnist_mlp.json", "--steps", "200", "--progress", "never"]
PARALLEL = [*MLP, "--strategy", "data-parallel"]
SMALL = "examples/mlp_small.json"


class Training(support.Case):
    def test_ranks_agree_and_repeat(self):
        losses = {}
        for ranks in (1, 2, 4):
            first = self.result(*PARALLEL, ranks=ranks, seconds=120)
            second = self.result(*PARALLEL, ranks=ranks, seconds=120)
            self.assertEqual(first["steps"], 200)
            self.assertEqual(first["ranks"], ranks)
            self.assertEqual(first["strategy"], "data-parallel")
            for key in ("loss", "accuracy", "test_accuracy"):
                self.assertEqual(first[key], second[key], f"{key} on {ranks} ranks")
            losses[ranks] = first["loss"]
        single = self.result(*MLP, seconds=120)
        self.assertEqual(single["strategy"], "none")
        self.assertGreater(single["test_accuracy"], 0.75)
        for ranks, loss in losses.items():
            with self.subTest(ranks=ranks):
                self.assert_near(loss, single["loss"], 1e-4)

    def test_workers_and_window_change_nothing(self):
        base = ["run", SMALL, "--steps", "50", "--progress", "never"]
        one = self.result(*base, "--workers", "1", "--window", "1")
        three = self.result(*base, "--workers", "3", "--window", "4")
        self.assertEqual(one["loss"], three["loss"])
        self.assertEqual((one["workers"], three["workers"]), (1, 3))

    def test_seed(self):
        base = ["run", SMALL, "--steps", "20", "--progress", "never"]
        a, b = (self.result(*base, "--seed", seed) for seed in ("7", "8"))
        self.assertNotEqual(a["loss"], b["loss"])
        self.assertEqual((a["seed"], b["seed"]), (7, 8))

    def test_placements_by_hand(self):
        single = self.result("run", SMALL, "--progress", "never")
        for name in ("two_ranks_model_parallel", "parameter_server"):
            with self.subTest(graph=name):
                path = f"examples/{name}.json"
                got = self.result("run", path, "--progress", "never", ranks=2)
                self.assert_near(got["loss"], single["loss"], 1e-4)
                status, plan, _ = self.troupe("show", path, "--ranks", "2")
                self.assertEqual(status, 0)
                for pair in re.findall(r"Send (\S+) to rank", plan):
                    self.assertIn(f"Recv {pair} from rank", plan)
                self.assertIn("Send ", plan)

    def rss_at(self, process, ranks, step):
        """The largest resident memory of the job's processes, in bytes, when `step` is reached."""
        line = support.wait_for_line(process.stderr, rf"step {step}/", 60)
        self.assertIsNotNone(line, f"step {step} was not reached")
        pids = [process.pid] if ranks == 0 else support.children(process.pid)
        return max(support.resident_bytes(pid) for pid in pids)

    def test_memory_is_flat(self):
        for ranks, steps in ((0, 200000), (2, 40000)):
            with self.subTest(ranks=ranks):
                process = support.start("run", f"{support.GRAPHS}/line.json", "--strategy",
                                        "data-parallel", "--steps", str(steps), ranks=ranks)
                first = self.rss_at(process, ranks, steps // 10)
                last = self.rss_at(process, ranks, steps - steps // 20)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0)
                self.assertLess(last - first, 3 << 20)

    def test_progress(self):
        process = support.start("run", SMALL, "--steps", "100")
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        lines = errors.splitlines()
        self.assertEqual(len(lines), 2, errors)
        self.assertRegex(lines[0], r"^train  step 50/100  loss [\d.]+  accuracy [\d.]+  "
                                   r"\d+ examples/s  \d+:\d\d left$")
        self.assertRegex(lines[1], r"^train  step 100/100  loss .* examples/s$")
        self.assertEqual(len(output.splitlines()), 1)

    def test_progress_in_place(self):
        process = support.start("run", SMALL, "--steps", "100", "--progress", "always")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertTrue(errors.endswith("\x1b[K\n"), errors)
        # Reading as text turns each carriage return into a newline.
        self.assertIn("\ntrain  step 100/100", errors)


if __name__ == "__main__":
    unittest.main()
