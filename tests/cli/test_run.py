"""Feeds, fetches, targets: literals and .npy files, one process and ranks."""
import os
import tempfile
import unittest

import numpy

import support

AFFINE = ["run", "examples/affine.json"]


class Run(support.Case):
    def test_affine(self):
        got = self.result(*AFFINE, "--feed", "x=[[1,2],[3,4]]", "--fetch", "y")
        self.assertEqual(got, {"y": [[14, 26], [20, 32]]})

    def test_affine_on_ranks(self):
        for ranks in (1, 2, 4):
            got = self.result(*AFFINE, "--feed", "x=[[1,2],[3,4]]", "--fetch", "y", ranks=ranks)
            self.assertEqual(got, {"y": [[14, 26], [20, 32]]})

    def test_inner_value_and_port(self):
        got = self.result(*AFFINE, "--feed", "product=[[1,2]]", "--fetch", "y:0", "--fetch", "b")
        self.assertEqual(got, {"y:0": [[11, 22]], "b": [10, 20]})

    def test_npy(self):
        with tempfile.TemporaryDirectory() as folder:
            into, out = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
            x = numpy.arange(12, dtype=numpy.float32).reshape(6, 2)
            numpy.save(into, x)
            got = self.result(*AFFINE, "--feed", f"x=@{into}", "--fetch", f"y={out}")
            self.assertEqual(got, {"y": out})
            y = numpy.load(out)
            self.assertEqual(y.dtype, numpy.float32)
            wanted = x @ numpy.array([[2, 0], [1, 3]], numpy.float32) + numpy.array([10, 20])
            numpy.testing.assert_array_equal(y, wanted)
            self.assertEqual(sorted(os.listdir(folder)), ["x.npy", "y.npy"])

    def test_unwritable_npy(self):
        status, output, messages = self.troupe(*AFFINE, "--feed", "x=[[1,2]]", "--fetch",
                                               "y=/nonexistent/y.npy")
        self.assertEqual((status, output), (3, ""))
        self.assertIn("/nonexistent/y.npy", messages)

    def test_three_nodes_on_two_ranks(self):
        got = self.result("run", "examples/three_nodes.json", "--fetch", "sum", ranks=2)
        self.assertEqual(got, {"sum": [11, 22]})

    def test_graphdef_form(self):
        feed = ["--feed", "x=[[1,2],[3,4]]", "--fetch", "y"]
        friendly = self.result(*AFFINE, *feed)
        graphdef = self.result("run", f"{support.GRAPHS}/affine_graphdef.json", *feed)
        self.assertEqual(graphdef, friendly)

    def test_target_and_steps(self):
        graph = f"{support.GRAPHS}/counter.json"
        self.assertEqual(self.result("run", graph, "--fetch", "next", "--steps", "5"), {"next": 5})
        self.assertEqual(self.result("run", graph, "--target", "next", "--steps", "5"), {})

    def test_check(self):
        status, output, messages = self.troupe("check", "examples/affine.json")
        self.assertEqual((status, output, messages),
                         (0, "examples/affine.json: good, 5 nodes for 1 rank\n", ""))

    def test_check_every_example(self):
        for name in sorted(os.listdir(os.path.join(support.ROOT, "examples"))):
            if name.endswith(".json"):
                status, _, messages = self.troupe("check", f"examples/{name}", "--ranks", "2")
                self.assertEqual((status, messages), (0, ""), name)

    def test_show_pairs(self):
        status, output, _ = self.troupe("show", "examples/three_nodes.json", "--ranks", "2")
        self.assertEqual(status, 0)
        self.assertRegex(output, "Send a to rank 1")
        self.assertRegex(output, "Recv a from rank 0")
        status, dot, _ = self.troupe("show", "examples/three_nodes.json", "--ranks", "2",
                                     "--format", "dot")
        self.assertEqual(status, 0)
        self.assertEqual(dot.count("subgraph \"cluster"), 2, dot)


if __name__ == "__main__":
    unittest.main()
