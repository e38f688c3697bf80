"""Loops beside one another, and runs that are ended: by a deadline, the watchdog, a deadlock."""
import json
import os
import tempfile
import unittest

import support


def node(name, op, *inputs, device=None, **attr):
    made = {"name": name, "op": op, "input": list(inputs), "attr": attr}
    if device is not None:
        made["device"] = f"/job:worker/task:{device}"
    return made


COUNTER = [node("zero", "Const", value=0.0), node("one", "Const", value=1.0),
           node("c", "Variable", dtype="float32", shape=[], initializer="zero"),
           node("next", "AssignAdd", "c", "one")]


class Runs(support.Case):
    def graph(self, nodes, **sections):
        file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            json.dump({"node": nodes, **sections}, file)
        return file.name

    def assert_message(self, arguments, ranks, *parts, status=1):
        got, output, messages = self.troupe(*arguments, ranks=ranks)
        self.assertEqual((got, output), (status, ""), messages)
        for part in parts:
            self.assertIn(part, messages)
        return messages

    def test_loops_beside_one_another(self):
        for ranks in (0, 3):
            for options in ([], ["--window", "1"], ["--workers", "1"]):
                with self.subTest(ranks=ranks, options=options):
                    got = self.result("run", "examples/concurrent_loops.json", *options,
                                      ranks=ranks)
                    self.assertEqual((got["steps"], got["trained"]), (200, 200.0))
                    self.assertGreaterEqual(got["tested"], 30)
                    self.assertGreaterEqual(got["read"], 0)
        got = self.result("run", "examples/concurrent_loops.json", "--window", "1")
        self.assertEqual(got["tested"], 30.0)  # nothing was in flight behind the end

    def test_a_companion_fails(self):
        """Its failure is the run's, and the loop that leads, which has no end, is not waited for."""
        for ranks in (0, 2, 5):
            last = max(ranks - 1, 0)
            nodes = COUNTER + [node("limit", "Const", value=5.0),
                               node("below", "Less", "c", "limit", device=last),
                               node("guard", "Assert", "below", "c", device=last)]
            graph = self.graph(nodes, loop={"lead": {"run": ["one"]},
                                            "beside": {"with": "lead", "run": ["next", "guard"]}})
            messages = self.assert_message(["run", graph], ranks, 'node "guard" (Assert) on rank '
                                           f"{last}, device CPU:0: assertion failed: 5")
            self.assertEqual(len(messages.splitlines()), 1)

    def test_replicas(self):
        """What runs beside the training, and ends it, under data-parallel."""
        nodes = [node("start", "Const", value=[4.0]), node("small", "Const", value=0.01),
                 node("axis", "Const", value=[0]),
                 node("w", "Variable", dtype="float32", shape=[1], initializer="start"),
                 node("square", "Square", "w"), node("loss", "Mean", "square", "axis"),
                 node("done", "Less", "loss", "small"),
                 node("low", "LessEqual", "loss", "limit"), node("limit", "Const", value=16.0),
                 node("guard", "Assert", "low", "loss")]
        graph = self.graph(
            nodes, loop={"fit": {"run": ["train", "guard"], "until": "done",
                                 "show": {"loss": "loss"}}},
            train={"loss": "loss", "optimizer": {"type": "GradientDescent",
                                                 "learning_rate": 0.1}})
        for ranks, strategy in ((0, "none"), (2, "data-parallel"), (3, "data-parallel")):
            got = self.result("run", graph, "--strategy", strategy, ranks=ranks)
            self.assertLess(got["loss"], 0.01)
            self.assertGreaterEqual(got["steps"], 17)  # 4 * 0.8^17 is the first below 0.1

    def test_staleness(self):
        for ranks in (0, 2):
            got = self.result("run", "examples/stale_reads.json", "--window", "8", ranks=ranks)
            self.assertEqual((got["fresh"], got["count"]), (99.0, 200.0))
            self.assertTrue(197 <= got["stale"] <= 199, got)

    def test_deadline(self):
        graph = self.graph(COUNTER, loop={"forever": {"run": ["next"]}})
        own = self.graph(COUNTER, loop={"forever": {"run": ["next"], "timeout": 0.3}})
        for ranks in (0, 3):
            self.assert_message(["run", graph, "--timeout", "0.2"], ranks,
                                "troupe: the run's time of 200 ms is up, in step ")
            self.assert_message(["run", own], ranks,
                                "troupe: the run's time of 300 ms is up, in step ")
            self.assertEqual(self.result("run", graph, "--fetch", "c", "--timeout", "60",
                                         ranks=ranks), {"c": 0.0})

    def test_deadline_of_a_loop_inside(self):
        """A While that never ends, within one step, on one rank and across two."""
        with open(os.path.join(support.ROOT, "examples/while.json"), encoding="utf-8") as file:
            graph = json.load(file)
        add = next(f for f in graph["library"]["function"] if f["name"] == "add")
        for ranks in (0, 2):
            add["node"][0] = node("next", "Add", "i", "zero", device=max(ranks - 1, 0))
            endless = self.graph(graph["node"], library=graph["library"])
            self.assert_message(["run", endless, "--feed", "n=5", "--fetch", "total",
                                 "--timeout", "0.3"], ranks,
                                "troupe: the run's time of 300 ms is up, in step 0\n")

    def test_deadlock(self):
        for ranks in (2, 3, 5):
            messages = self.assert_message(
                ["run", "examples/deadlock.json", "--fetch", "sum", "--watchdog", "0"], ranks,
                "troupe: deadlock: no firing can complete any more; ",
                'node "first_on_0" (AllReduce) on rank 0 has all its inputs in step 0 and waits for',
                'node "first_on_1" (AllReduce) on rank 1 has all its inputs in step 0 and waits for',
                'on rank 0 actor "then_on_0" waits in step 0 for "first_on_0" (input 0)')
            self.assertEqual(len(messages.splitlines()), 1)
            self.assertRegex(messages, r"rank 0 waits in step 0 for \S+ node "
                                       r'"then_on_1" \(AllReduce\) of rank 1')

    def test_deadlock_beside_other_loops(self):
        """A loop that gets on hides the deadlock of another one only until it is over."""
        with open(os.path.join(support.ROOT, "examples/deadlock.json"), encoding="utf-8") as file:
            nodes = json.load(file)["node"]
        graph = self.graph(COUNTER[:1] + nodes + COUNTER[2:], loop={
            "lead": {"run": ["next"], "steps": 2000},
            "beside": {"with": "lead", "run": ["sum"], "steps": 3}})
        self.assert_message(["run", graph, "--watchdog", "0"], 2, "troupe: deadlock: ")

    def test_wrong_options(self):
        for option, value, more in (("timeout", "0", ""), ("timeout", "soon", ""),
                                    ("timeout", "-1", ""), ("watchdog", "1e12", ", or 0")):
            self.assert_fails(["run", "examples/affine.json", f"--{option}={value}"], 2,
                              f"troupe: --{option} wants seconds, from 0.001 to 1000000000{more}, "
                              f'got "{value}"\n')

    def test_wrong_loops(self):
        loops = {
            "a": {"run": ["next"], "with": "aa"},
            "b": {"run": ["next"], "with": "c"},
            "c": {"run": ["next"], "after": "b"},
            "d": {"run": ["next"], "after": "a", "with": "b"},
            "e": {"run": ["next"], "timeout": 0, "staleness": 2000, "until": 7},
        }
        graph = self.graph(COUNTER, loop=loops)
        status, output, messages = self.troupe("check", graph)
        self.assertEqual((status, output), (2, ""))
        for message in (
                'loop "a": "with" names no loop "aa" (did you mean "a"?)',
                'loop "b": "with" leads back to a loop before it',
                'loop "c": "after" leads back to a loop before it',
                'loop "d": wants "after" or "with", not both: it starts once',
                'loop "e": "timeout" wants seconds, from 0.001 to 1000000000, got 0',
                'loop "e": "staleness" wants an int from 0 to 1024, got 2000',
                'loop "e": "until" wants a string, got 7'):
            self.assertRegex(messages, r"\.json:1:\d+: ")
            self.assertIn(message, messages)
        graph = self.graph(COUNTER, loop={"a": {"run": ["next"], "until": "c"}})
        self.assert_message(["run", graph], 0, 'until "c": wants a bool scalar, is float32', status=2)


if __name__ == "__main__":
    unittest.main()
