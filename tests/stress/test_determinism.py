"""The same seed gives the same bits, however many workers, steps in flight and ranks there are."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "cli"))
import support  # noqa: E402

SEED = 7


def const(name, dtype, value):
    return {"name": name, "op": "Const", "attr": {"dtype": dtype, "value": value}}


def noise(tasks):
    """Random numbers into float variables, step after step: sums that depend on their order."""
    nodes = [const("shape", "int32", [257]), const("share", "float32", 0.1)]
    for i in range(12):
        op = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")[i % 3]
        device = {"device": f"/job:worker/task:{i % tasks}"}
        nodes += [
            {"name": f"start{i}", "op": op, "input": ["shape"], "attr": {"dtype": "float32"}},
            {"name": f"state{i}", "op": "VariableV2",
             "attr": {"dtype": "float32", "shape": [257], "initializer": f"start{i}"}, **device},
            {"name": f"draw{i}", "op": op, "input": ["shape"], "attr": {"dtype": "float32"}},
            {"name": f"both{i}", "op": "Mul", "input": [f"state{i}", f"draw{(i + 5) % 12}"], **device},
            {"name": f"less{i}", "op": "Mul", "input": [f"both{i}", "share"]},
            {"name": f"update{i}", "op": "AssignAdd", "input": [f"state{i}", f"less{i}"]}]
    waits = [f"^update{i}" for i in range(12)]
    nodes += [{"name": "sum", "op": "AddN", "input": [f"both{i}" for i in range(12)]},
              {"name": "out", "op": "Identity", "input": ["sum"] + waits}]
    return {"node": nodes}


def training():
    """Momentum on a loss over random inputs."""
    def random(name, size):
        return {"name": name, "op": "TruncatedNormal", "input": [size], "attr": {"dtype": "float32"}}

    def variable(name, shape, initial):
        return {"name": name, "op": "VariableV2",
                "attr": {"dtype": "float32", "shape": shape, "initializer": initial}}
    return {
        "node": [
            const("sizes", "int32", [64, 9]), const("first", "int32", [9, 5]),
            const("second", "int32", [5, 1]), random("x", "sizes"), random("w0", "first"),
            random("v0", "second"), variable("w", [9, 5], "w0"), variable("v", [5, 1], "v0"),
            {"name": "hidden", "op": "MatMul", "input": ["x", "w"]},
            {"name": "tanh", "op": "Tanh", "input": ["hidden"]},
            {"name": "y", "op": "MatMul", "input": ["tanh", "v"]},
            {"name": "out", "op": "L2Loss", "input": ["y"]}],
        "train": {"loss": "out", "optimizer": {"type": "Momentum", "learning_rate": 0.001,
                                               "momentum": 0.9}}}


class Determinism(support.Case):
    def bits(self, graph, steps, workers, window, ranks=0, options=()):
        """What the node "out" gives in the last step, as the bytes of a file."""
        with tempfile.TemporaryDirectory() as folder:
            path, into = os.path.join(folder, "graph.json"), os.path.join(folder, "out.npy")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(graph, file)
            self.result("run", path, "--fetch", f"out={into}", *options, "--steps", str(steps),
                        "--seed", str(SEED), "--workers", str(workers), "--window", str(window),
                        ranks=ranks, seconds=120)
            with open(into, "rb") as file:
                return file.read()

    def check(self, graph, options=()):
        wanted = self.bits(graph, 20, 1, 1, options=options)
        self.assertNotEqual(self.bits(graph, 21, 1, 1, options=options), wanted)
        for workers in (1, 2, 8):
            for window in (1, 2, 4):
                with self.subTest(workers=workers, window=window):
                    got = self.bits(graph, 20, workers, window, options=options)
                    self.assertTrue(got == wanted, "other bits")

    def test_noise(self):
        self.check(noise(1))

    def test_noise_on_two_ranks(self):
        wanted = self.bits(noise(1), 20, 1, 1)
        for workers, window in ((1, 1), (1, 4), (2, 2), (8, 4)):
            with self.subTest(workers=workers, window=window):
                got = self.bits(noise(2), 20, workers, window, ranks=2)
                self.assertTrue(got == wanted, "other bits")

    def test_training(self):
        self.check(training(), ["--target", "train"])


if __name__ == "__main__":
    unittest.main()
