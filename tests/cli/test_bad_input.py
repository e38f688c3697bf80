"""Bad graphs, feeds and files: one exact message each, exit status 2, from `run` and `check`."""
import gzip
import json
import os
import struct
import tempfile
import unittest

import numpy

import support

AFFINE = ["run", "examples/affine.json"]

# Of each graph in graphs/wrong/: the lines of its message, after "troupe: "; @ stands for its path.
GRAPHS = {
    "broken_json": ["@:3:3: ']' expected near '{'"],
    "duplicate_names": ['@:4:12: there is a node "a" already, in line 2'],
    "unknown_op": ['@:3:3: node "b": no op "Matmul" (did you mean "MatMul"?)'],
    "unknown_key": ['@:3:35: node "b": no key "inputs" is known here (did you mean "input"?)'],
    "unknown_attr": ['@:3:63: node "b": op MatMul has no attr "transposea" '
                     '(did you mean "transpose_a"?)'],
    "wrong_attr_type": ['@:3:78: node "b": attr "transpose_a" wants a bool, got "yes"'],
    "missing_input": ['@:4:45: node "b": input "sun": no node "sun" (did you mean "sum"?)'],
    "too_few_inputs": ['node "b" (MatMul, @:3): wants 2 inputs (a, b), has 1'],
    "bad_port": ['node "b" (Identity, @:3): input "input" is "a:1", but node "a" (Const) has 1 '
                 'output'],
    "shape_mismatch": ['node "b" (MatMul, @:4): MatMul wants a\'s columns (2) equal to b\'s rows (1): '
                       '[2,2] x [1,3]'],
    "broadcast_mismatch": ['node "b" (Add, @:4): shapes [2,2] and [3] do not broadcast'],
    "dtype_mismatch": ['node "b" (Add, @:4): input "y" wants float32, as attr "T" or the inputs '
                       'before it say, got int32 from "c"'],
    "cycle": ["@:3:3: cycle without NextIteration: b -> c -> d -> b"],
    "unsatisfiable_device": ['@:3:3: node "b" (Identity): device "/job:worker/task:7": the cluster '
                             'has worker tasks 0 to 0'],
    "all_errors": ['@:3:3: node "b": no op "Matmul" (did you mean "MatMul"?)',
                   '@:4:35: node "c": no key "inputs" is known here (did you mean "input"?)',
                   '@:5:45: node "d": input "e": no node "e"'],
}


WRONG = f"{support.GRAPHS}/wrong"


def message(lines, path):
    return "".join(f"troupe: {line.replace('@', path)}\n" for line in lines)


class BadGraph(support.Case):
    maxDiff = None

    def test_messages(self):
        for name, lines in GRAPHS.items():
            path = f"{WRONG}/{name}.json"
            with self.subTest(graph=name):
                wanted = (2, "", message(lines, path))
                self.assertEqual(self.troupe("run", path, "--fetch", "b"), wanted)
                self.assertEqual(self.troupe("check", path), wanted)

    def test_on_ranks(self):
        path = f"{WRONG}/all_errors.json"
        self.assert_fails(["run", path, "--fetch", "b"], 2, message(GRAPHS["all_errors"], path),
                          ranks=2)

    def test_every_graph_has_a_message(self):
        names = {name[:-5] for name in os.listdir(os.path.join(support.ROOT, WRONG))}
        self.assertEqual(set(GRAPHS), names)

    def test_no_file(self):
        for ranks in (0, 2):
            self.assert_fails(["run", "nothing.json", "--fetch", "b"], 2,
                              "troupe: nothing.json: No such file or directory\n", ranks=ranks)

    def test_unknown_strategy(self):
        status, output, messages = self.troupe("run", "examples/mlp_small.json", "--strategy",
                                               "data-paralel")
        self.assertEqual((status, output), (2, ""))
        self.assertIn('"data-paralel"', messages)
        self.assertIn('"data-parallel"', messages)


class BadNames(support.Case):
    def test_fetch(self):
        feed = ["--feed", "x=[[1,2]]"]
        self.assert_fails([*AFFINE, *feed, "--fetch", "yy"], 2,
                          'troupe: fetch "yy": no node "yy" (did you mean "y"?)\n')
        self.assert_fails([*AFFINE, *feed, "--fetch", "prodct"], 2,
                          'troupe: fetch "prodct": no node "prodct" (did you mean "product"?)\n')
        self.assert_fails([*AFFINE, *feed, "--fetch", "prodct"], 2,
                          'troupe: fetch "prodct": no node "prodct" (did you mean "product"?)\n', ranks=2)
        self.assert_fails([*AFFINE, *feed, "--fetch", "y:1"], 2,
                          'troupe: fetch "y:1": "y:1": node "y" (Add) has 1 output\n')

    def test_feed(self):
        self.assert_fails([*AFFINE, "--feed", "z=1", "--fetch", "y"], 2,
                          'troupe: --feed "z": no node "z"\n')
        self.assert_fails([*AFFINE, "--feed", "x=[[1,2,3]]", "--fetch", "y"], 2,
                          'troupe: feed "x": wants shape [?,2], got [1,3]\n')
        self.assert_fails([*AFFINE, "--feed", "x=[1,2]", "--fetch", "y"], 2,
                          'troupe: feed "x": wants shape [?,2], got [2]\n')
        self.assert_fails([*AFFINE, "--feed", "x=[[1,2],[3]]", "--fetch", "y"], 2,
                          'troupe: --feed "x": ragged list: got 1 elements where the first has '
                          '2\n')
        self.assert_fails([*AFFINE, "--feed", "x=[[1,2", "--fetch", "y"], 2,
                          'troupe: --feed "x": wants a JSON literal such as [[1, 2], [3, 4]], got '
                          '"[[1,2": \']\' expected near end of file\n')

    def test_nothing_fed(self):
        """A graph and a command line that are right by themselves: the step fails."""
        for ranks in (0, 2):
            self.assert_fails([*AFFINE, "--fetch", "y"], 1,
                              'troupe: examples/affine.json:2:3: node "x" (Placeholder) on rank 0, '
                              'device CPU:0: placeholder "x" needs a value: feed it with --feed '
                              'x=...\n', ranks=ranks)


class BadFiles(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, data=None):
        path = os.path.join(self.folder, name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
        return path

    def test_npy(self):
        whole = self.path("whole.npy")
        numpy.save(whole, numpy.zeros((4, 2), numpy.float32))
        with open(whole, "rb") as file:
            data = file.read()
        wrong = self.path("wrong.npy")
        numpy.save(wrong, numpy.zeros((4, 2), numpy.int32))
        cases = [
            (self.path("none.npy"), '--feed "x": {}: No such file or directory'),
            (self.path("text.npy", b"1 2 3 4\n" * 10),
             '--feed "x": {}: no .npy file: it does not begin with "\\x93NUMPY"'),
            (self.path("short.npy", data[:40]),
             '--feed "x": {}: wants 118 bytes of header, has 30'),
            (self.path("cut.npy", data[:-5]), '--feed "x": {}: wants 32 bytes of data, has 27'),
            (wrong, 'feed "x": wants float32, got int32'),
        ]
        for path, text in cases:
            with self.subTest(path=os.path.basename(path)):
                self.assert_fails([*AFFINE, "--feed", f"x=@{path}", "--fetch", "y"], 2,
                                  f"troupe: {text.format(path)}\n")

    def idx(self, images, labels):
        """A graph that reads the data set."""
        path = self.path("graph.json")
        graph = {"node": [{"name": "data", "op": "IdxDataset",
                           "attr": {"images": images, "labels": labels, "batch": 2}}]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(graph, file)
        return path

    def test_idx(self):
        header = struct.pack(">IIII", 0x803, 4, 2, 2)
        good = self.path("good", header + bytes(16))
        labels = self.path("labels", struct.pack(">II", 0x801, 4) + bytes(4))
        few = self.path("few", struct.pack(">II", 0x801, 3) + bytes(3))
        cut = gzip.compress(header + bytes(16), mtime=0)
        cases = [
            (self.path("none"), labels, "{0}: No such file or directory"),
            (self.path("cut", header + bytes(15)), labels,
             "{0}: wants 16 bytes of data, has 15"),
            (self.path("long", header + bytes(17)), labels,
             "{0}: has more than the 16 bytes of data that its header announces"),
            (self.path("short", header[:9]), labels,
             "{0}: wants an idx header of 16 bytes, has 9"),
            (self.path("cut.gz", cut[:-12]), labels,
             "{0}: wants an idx header of 16 bytes, has 12 (unexpected end of file)"),
            (self.path("text", b"no idx file at all"), labels,
             "{0}: wants an idx file of unsigned bytes with 3 dimensions (magic 0x00000803), got "
             "magic 0x6e6f2069"),
            (good, few, "{0} has 4 images and {1} has 3 labels"),
        ]
        for images, labels_path, text in cases:
            for ranks in (0, 2):
                with self.subTest(images=os.path.basename(images), ranks=ranks):
                    graph = self.idx(images, labels_path)
                    text = text.format(images, labels_path)
                    self.assert_fails(["run", graph, "--fetch", "data:1"], 2,
                                      f'troupe: {graph}:1:11: node "data" (IdxDataset): {text}\n',
                                      ranks=ranks)
        self.assertEqual(self.result("run", self.idx(good, labels), "--fetch", "data:1"),
                         {"data:1": [0, 0]})


if __name__ == "__main__":
    unittest.main()
