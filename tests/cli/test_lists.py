"""Lists and arrays of tensors: the examples, lists and strings that travel, what does not."""
import json
import os
import tempfile
import unittest

import support

EXAMPLE = ["run", "examples/lists.json", "--feed", "readings=[[1,2],[3,4],[5,6]]",
           "--feed", "sizes=[1,2]"]
ON_RANKS = f"{support.GRAPHS}/lists_on_ranks.json"


def fetches(*names):
    return [word for name in names for word in ("--fetch", name)]


class Lists(support.Case):
    def test_example(self):
        names = ["groups", "all_groups", "count", "first_group", "joined", "joined:1",
                 "last_written", "array_size"]
        for ranks in (0, 1, 2, 3):
            got = self.result(*EXAMPLE, *fetches(*names), ranks=ranks)
            self.assertEqual(got, {
                "groups": [[[1, 2]], [[3, 4], [5, 6]]],
                "all_groups": [[[1, 2]], [[3, 4], [5, 6]], [[70, 80]]],
                "count": 3,
                "first_group": [[1, 2]],
                "joined": [[1, 2], [3, 4], [5, 6], [70, 80]],
                "joined:1": [1, 2, 1],
                "last_written": [[70, 80]],
                "array_size": 3}, ranks)

    def test_loops(self):
        wanted = {"map": {"squares": [1, 4, 9, 16]}, "fold": {"total": 10},
                  "scan": {"running": [1, 3, 6, 10]}}
        for name, result in wanted.items():
            for ranks in (0, 1, 2, 3):
                got = self.result("run", f"examples/{name}.json", "--feed", "x=[1,2,3,4]",
                                  *fetches(*result), ranks=ranks)
                self.assertEqual(got, result, ranks)

    def test_loops_over_nothing(self):
        for name, result in {"map": {"squares": []}, "fold": {"total": 0},
                             "scan": {"running": []}}.items():
            got = self.result("run", f"examples/{name}.json", "--feed", "x=[]", *fetches(*result))
            self.assertEqual(got, result)

    def test_list_travels_in_a_loop(self):
        with open(os.path.join(support.ROOT, support.GRAPHS, "scan_primitives.json"),
                  encoding="utf-8") as file:
            graph = json.load(file)
        places = {"y/new": 1, "sum/new": 2, "item": 1, "i": 2, "running": 0}
        for node in graph["node"]:
            if node["name"] in places:
                node["device"] = f"/job:worker/task:{places[node['name']]}"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scan.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(graph, file)
            got = self.result("run", path, "--feed", f"x={list(range(50))}", "--steps", "3",
                              *fetches("running"), ranks=3)
        self.assertEqual(got, {"running": [i * (i + 1) // 2 for i in range(50)]})

    def test_arrays_in_a_loop(self):
        graph = f"{support.GRAPHS}/array_loop.json"
        for ranks in (0, 2):
            got = self.result("run", graph, "--feed", f"x={list(range(20))}", "--steps", "30",
                              *fetches("doubled"), ranks=ranks)
            self.assertEqual(got, {"doubled": [2 * i for i in range(20)]})
            got = self.result("run", "examples/array_loop.json", "--feed", "x=[1,2,3,4]",
                              "--steps", "30", *fetches("doubled"), ranks=ranks)
            self.assertEqual(got, {"doubled": [2, 4, 6, 8]})

    def test_wrong_sizes(self):
        status, output, messages = self.troupe(
            "run", "examples/lists.json", "--feed", "readings=[[1,2]]", "--feed", "sizes=[1,2]",
            *fetches("count"))
        self.assertEqual((status, output), (2, ""), messages)
        self.assertIn('node "groups" (TensorListSplit', messages)
        self.assertIn('"lengths" sum to 3: "tensor" has 1 rows', messages)

    def test_travel(self):
        got = self.result("run", ON_RANKS, "--steps", "20",
                          *fetches("with_b", "both", "stacked", "word_list", "there", "read"),
                          ranks=3)
        self.assertEqual(got, {"with_b": [[1, 2], [3, 4]], "both": [[[1, 2], [3, 4]]],
                               "stacked": [[1, 2], [3, 4]], "word_list": ["north", "", "south"],
                               "there": ["north", "", "south"], "read": [3, 4]})

    def test_arrays_stay(self):
        status, output, messages = self.troupe("run", ON_RANKS, *fetches("array"), ranks=3)
        self.assertEqual((status, output), (2, ""), messages)
        self.assertIn("a resource lives on rank 2 and does not travel to rank 0", messages)
        status, output, messages = self.troupe("check", f"{support.GRAPHS}/array_apart.json",
                                               "--ranks", "2")
        self.assertEqual((status, output), (2, ""), messages)
        self.assertIn('node "size" (TensorArraySizeV3', messages)
        self.assertIn("which must be on the same", messages)

    def test_no_file_of_a_list(self):
        status, output, messages = self.troupe(*EXAMPLE, "--fetch", "groups=/tmp/groups.npy")
        self.assertNotEqual(status, 0)
        self.assertEqual(output, "")
        self.assertIn("variant", messages)

    def test_no_feed_of_a_list(self):
        status, output, messages = self.troupe("run", "examples/lists.json", "--feed", "groups=[1]",
                                               *fetches("count"))
        self.assertEqual((status, output), (2, ""), messages)
        self.assertIn("no literal has dtype variant", messages)


if __name__ == "__main__":
    unittest.main()
