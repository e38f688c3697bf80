"""Simulated accelerators: the nodes of real graphs on SIM:0, SIM:1 and CPU:0 of 1 to 3 ranks, with
injected delays: the same bits as without them. And what they refuse, and how they fail.
"""
import json
import os
import random
import tempfile
import unittest

import support

EXAMPLE = ["run", "examples/simulated_devices.json", "--feed", "x=[[1,2],[3,4]]", "--fetch", "y",
           "--fetch", "sum"]
SIM = "2,latency=10us,bandwidth=1GB/s,delays=7,memory=64MB"
TIMES = ("seconds", "examples_per_second", "ranks", "workers")
# Of graph files: what has state, strings or lists, and calls, whose whole body would follow.
ON_CPU = ("Variable", "IdxDataset", "While", "If", "Case", "Call", "TensorList", "TensorArray")


def scattered(path, seed, ranks):
    """The graph with its nodes on devices drawn at random, of those ranks."""
    drawn = random.Random(seed)
    with open(os.path.join(support.ROOT, path)) as file:
        graph = json.load(file)
    bodies = [function["node"] for function in graph.get("library", {}).get("function", [])]
    for node in graph["node"] + [node for body in bodies for node in body]:
        if node["op"].startswith(ON_CPU):
            continue
        device = f"/device:{drawn.choice(['SIM:0', 'SIM:1', 'SIM:1', 'CPU:0'])}"
        task = f"/job:worker/task:{drawn.randrange(ranks)}" if ranks > 1 else ""
        node["device"] = task + device
    return graph


class Sim(support.Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "graph.json")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, graph):
        with open(self.path, "w") as file:
            json.dump(graph, file)
        return self.path

    def values(self, *arguments, ranks=0):
        result = self.result(*arguments, ranks=ranks, seconds=120)
        return {key: value for key, value in result.items() if key not in TIMES}

    def assert_same_when_scattered(self, path, arguments, seeds, rank_counts=(1,)):
        right = self.values("run", path, *arguments)
        for ranks in rank_counts:
            for seed in seeds:
                graph = self.write(scattered(path, seed, ranks))
                options = ["--sim", f"2,latency=5us,delays={seed}", "--workers", str(1 + seed % 3),
                           "--window", str((1, 4, 16)[seed % 3])]
                with self.subTest(path=path, ranks=ranks, seed=seed):
                    got = self.values("run", graph, *arguments, *options,
                                      ranks=ranks if ranks > 1 else 0)
                    self.assertEqual(got, right)

    def test_example(self):
        for options in (["--sim", "2"], ["--sim", SIM], ["--sim", SIM, "--workers", "1"]):
            got = self.result(*EXAMPLE, *options)
            self.assertEqual(got, {"y": [[12.0], [23.0]], "sum": [35.0]})

    def test_training(self):
        self.assert_same_when_scattered("examples/mlp_small.json", ["--steps", "30"], range(1, 5))

    def test_training_on_ranks(self):
        # Variables are where their graph says; what is drawn for ranks is elsewhere.
        right = self.values("run", "examples/two_ranks_model_parallel.json", "--steps", "20", ranks=2)
        with open(os.path.join(support.ROOT, "examples/two_ranks_model_parallel.json")) as file:
            graph = json.load(file)
        for seed in range(1, 4):
            drawn = random.Random(seed)
            for node in graph["node"]:
                place = node["device"].split("/device:")[0]
                if not node["op"].startswith(ON_CPU):
                    node["device"] = place + f"/device:{drawn.choice(['SIM:0', 'SIM:1', 'CPU:0'])}"
            with self.subTest(seed=seed):
                got = self.values("run", self.write(graph), "--steps", "20", "--sim",
                                  f"2,delays={seed}", ranks=2)
                self.assertEqual(got, right)

    def test_loops(self):
        self.assert_same_when_scattered("examples/while.json",
                                        ["--feed", "n=12", "--fetch", "total", "--fetch", "sum",
                                         "--steps", "5"], range(1, 6), (1, 2, 3))
        self.assert_same_when_scattered("examples/nested_while.json",
                                        ["--feed", "n=4", "--fetch", "cells"], range(1, 4), (1, 2))

    def test_branches_and_calls(self):
        for x in (1, 5):
            self.assert_same_when_scattered("examples/if.json",
                                            ["--feed", f"x={x}", "--fetch", "y"], range(1, 4),
                                            (1, 2))
        self.assert_same_when_scattered("examples/call.json",
                                        ["--feed", "x=[1,2]", "--fetch", "once"], range(1, 4))
        self.assert_same_when_scattered("examples/factorial.json",
                                        ["--feed", "n=7", "--fetch", "factorial"], range(1, 4))

    def test_lists(self):
        self.assert_same_when_scattered("examples/map.json",
                                        ["--feed", "x=[1,2,3,4]", "--fetch", "squares"],
                                        range(1, 4))

    def test_a_call_takes_its_body_along(self):
        with open(os.path.join(support.ROOT, "examples/while.json")) as file:
            graph = json.load(file)
        for node in graph["node"]:
            if node["op"] == "While":
                node["device"] = "/device:SIM:0"
        path = self.write(graph)
        status, output, _ = self.troupe("show", path, "--format", "json")
        self.assertEqual(status, 0)
        on = {node["name"]: node["device"] for node in json.loads(output)["node"]}
        adds = [on[name] for name in on if name.endswith(("/next", "/more", "/less"))]
        self.assertGreaterEqual(len(adds), 3, on)
        self.assertEqual(set(adds), {"SIM:0"}, on)
        got = self.result("run", path, "--feed", "n=10", "--fetch", "total", "--sim", "1,delays=3")
        self.assertEqual(got, {"total": 55})

    def test_values_of_no_elements_and_shared_memory(self):
        nodes = [{"name": "x", "op": "Placeholder", "attr": {"dtype": "float32", "shape": [None]}},
                 {"name": "same", "op": "Identity", "input": ["x"], "device": "/device:SIM:0"},
                 {"name": "shape", "op": "Const", "attr": {"dtype": "int32", "value": [-1, 1]}},
                 {"name": "column", "op": "Reshape", "input": ["same", "shape"],
                  "device": "/device:SIM:0"},
                 {"name": "twice", "op": "Add", "input": ["column", "column"],
                  "device": "/device:SIM:1"},
                 {"name": "less", "op": "Sub", "input": ["column", "column"],
                  "device": "/device:SIM:0"}]
        path = self.write({"node": nodes})
        for x, twice in (([], []), ([1, 2], [[2], [4]])):
            got = self.result("run", path, "--feed", f"x={json.dumps(x)}", "--fetch", "twice",
                              "--fetch", "less", "--fetch", "same", "--sim", "2,delays=5")
            self.assertEqual(got, {"twice": twice, "less": [[0]] * len(x), "same": x})

    def test_a_failing_kernel(self):
        nodes = [{"name": "x", "op": "Placeholder", "attr": {"dtype": "int32", "shape": []}},
                 {"name": "ten", "op": "Const", "attr": {"dtype": "int32", "value": 10}},
                 {"name": "quotient", "op": "FloorDiv", "input": ["ten", "x"],
                  "device": "/device:SIM:1"},
                 {"name": "y", "op": "Neg", "input": ["quotient"], "device": "/device:SIM:0"}]
        path = self.write({"node": nodes})
        self.assertEqual(self.result("run", path, "--feed", "x=3", "--fetch", "y", "--sim", "2"),
                         {"y": -3})
        for ranks in (0, 2):
            status, output, messages = self.troupe("run", path, "--feed", "x=0", "--fetch", "y",
                                                   "--sim", "2,delays=2", ranks=ranks)
            self.assertEqual((status, output), (2, ""), messages)
            self.assertRegex(messages, r'node "quotient" \(FloorDiv\) on rank 0, device SIM:1: .*zero')

    def test_memory_exhausted(self):
        nodes = [{"name": "x", "op": "Placeholder", "attr": {"dtype": "float32", "shape": [None]}},
                 {"name": "y", "op": "Neg", "input": ["x"], "device": "/device:SIM:0"},
                 {"name": "big", "op": "Tile", "input": ["y", "times"], "device": "/device:SIM:0"},
                 {"name": "times", "op": "Const", "attr": {"dtype": "int32", "value": [1000]}}]
        path = self.write({"node": nodes})
        run = ["run", path, "--feed", "x=[1,2,3,4]", "--fetch"]
        self.assertEqual(self.result(*run, "y", "--sim", "1,memory=8KiB"), {"y": [-1, -2, -3, -4]})
        status, output, messages = self.troupe(*run, "big", "--sim", "1,memory=8KiB")
        self.assertEqual((status, output), (3, ""), messages)
        self.assertRegex(messages, r'node "big" \(Tile\) on rank 0, device SIM:0: SIM:0 has no room '
                                   r"for 16000 bytes: \d+ of its 8192 are in use")
        feed = f"x={json.dumps([1] * 4000)}"
        status, output, messages = self.troupe("run", path, "--feed", feed, "--fetch", "y", "--sim",
                                               "1,memory=8KiB")
        self.assertEqual((status, output), (3, ""), messages)
        self.assertIn("copying its output: SIM:0 has no room for 16000 bytes", messages)

    def test_memory_is_given_back(self):
        """Many steps through a memory that holds a few of them."""
        nodes = [{"name": "x", "op": "Placeholder", "attr": {"dtype": "float32", "shape": [None]}},
                 {"name": "y", "op": "Neg", "input": ["x"], "device": "/device:SIM:0"},
                 {"name": "z", "op": "Neg", "input": ["y"], "device": "/device:SIM:0"}]
        got = self.result("run", self.write({"node": nodes}), "--feed", "x=[1,2,3,4]", "--fetch",
                          "z", "--steps", "2000", "--window", "4", "--sim", "1,memory=4KiB")
        self.assertEqual(got, {"z": [1, 2, 3, 4]})

    def test_a_slow_copy_is_no_deadlock(self):
        for ranks in (0, 2):
            got = self.result(*EXAMPLE, "--sim", "2,latency=500ms", ranks=ranks)
            self.assertEqual(got, {"y": [[12.0], [23.0]], "sum": [35.0]})

    def test_deadline(self):
        status, output, messages = self.troupe(*EXAMPLE, "--sim", "2,latency=1s", "--timeout", "0.3")
        self.assertEqual((status, output), (1, ""))
        self.assertIn("time of 300 ms is up", messages)

    def refused(self, node, message, *options, more=()):
        path = self.write({"node": [*more, node]})
        status, output, messages = self.troupe("run", path, "--fetch", node["name"], *options)
        self.assertEqual((status, output), (2, ""), messages)
        self.assertIn(message, messages)

    def test_refusals(self):
        const = {"name": "c", "op": "Const", "attr": {"dtype": "float32", "value": 1}}
        self.refused(dict(const, device="SIM:0"), 'device "SIM:0": every rank has CPU:0 and no SIM')
        self.refused(dict(const, device="SIM:1"), 'device "SIM:1": every rank has SIM:0 alone',
                     "--sim", "1")
        self.refused(dict(const, device="SIM:2"), 'every rank has SIM:0 to SIM:1', "--sim", "2")
        self.refused(dict(const, device="CPU:1"), 'every rank has CPU:0 alone', "--sim", "2")
        self.refused({"name": "v", "op": "Variable", "device": "SIM:0",
                      "attr": {"dtype": "float32", "shape": [], "initializer": "c"}},
                     "state and the ops that use it are on CPU:0", "--sim", "1", more=[const])
        self.refused({"name": "s", "op": "Const", "device": "SIM:0",
                      "attr": {"dtype": "string", "value": "a"}},
                     "strings, lists and resources are on CPU:0", "--sim", "1")

    def test_usage(self):
        self.assert_fails([*EXAMPLE, "--sim", "two"], 2,
                          'troupe: --sim: "two" wants the number of devices first, from 1 to 64, as '
                          "in 2,latency=10us,bandwidth=1GB/s,delays=7,memory=64MB\n")
        self.assert_fails([*EXAMPLE, "--sim", "2,memory=1"], 2,
                          'troupe: --sim: "memory=1": memory wants from 4KiB to 1024GiB with its unit '
                          "(B, KB, MB, GB, KiB, MiB, GiB)\n", ranks=2)
        status, output, _ = self.troupe("info", "--sim", "2")
        self.assertEqual(status, 0)
        self.assertIn("devices: CPU:0, SIM:0, SIM:1\n", output)
        status, output, messages = self.troupe("check", "examples/simulated_devices.json")
        self.assertEqual((status, messages), (0, ""))


if __name__ == "__main__":
    unittest.main()
