"""Lists and arrays of tensors: the example, lists and strings that travel, what does not."""
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
