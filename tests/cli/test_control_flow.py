"""Branches, calls and loops of functions: what they compute, on one process and on ranks."""
import unittest

import support

G = support.GRAPHS


class Branches(support.Case):
    def test_if(self):
        for x, y in ((-3, 3), (4, 40)):
            for ranks in (0, 1, 2, 3):
                got = self.result("run", "examples/if.json", "--feed", f"x={x}", "--fetch", "y",
                                  ranks=ranks)
                self.assertEqual(got, {"y": y})

    def test_case(self):
        wanted = {0: [-1, -2, -3], 1: [1, 4, 9], 2: 6, 3: 6, -1: 6}
        for which, y in wanted.items():
            for ranks in (0, 2):
                got = self.result("run", "examples/case.json", "--feed", f"which={which}",
                                  "--fetch", "y", ranks=ranks)
                self.assertEqual(got, {"y": y})

    def test_call(self):
        for ranks in (0, 2):
            got = self.result("run", "examples/call.json", "--feed", "x=[1,2]", "--fetch", "once",
                              "--fetch", "twice", ranks=ranks)
            self.assertEqual(got, {"once": [3, 5], "twice": [7, 11]})

    def test_branches_on_different_ranks(self):
        for which, z in (("true", [-1, -4]), ("false", [-3, -6])):
            for ranks in (2, 3):
                got = self.result("run", f"{G}/branches_on_ranks.json", "--feed", "x=[1,2]",
                                  "--feed", f"which={which}", "--fetch", "z", ranks=ranks)
                self.assertEqual(got, {"z": z})

    def test_a_branch_changes_state_only_when_taken(self):
        for ranks in (0, 2):
            got = self.result("run", f"{G}/branch_state.json", "--target", "if", "--fetch", "total",
                              "--steps", "6", ranks=ranks)
            self.assertEqual(got, {"total": 1 + 2 + 3})

    def test_a_loss_in_a_function_is_trained(self):
        got = self.result("run", f"{G}/train_call.json", "--target", "train", "--fetch", "loss",
                          "--steps", "4")
        self.assertEqual(got, {"loss": 0.0625})

    def test_merge_of_primitives(self):
        for x, y in ((-2, 2), (3, 9)):
            got = self.result("run", f"{G}/dead_fetch.json", "--feed", f"x={x}", "--fetch", "merge")
            self.assertEqual(got, {"merge": y})

    def test_a_fetch_in_a_branch_not_taken(self):
        for ranks in (0, 2):
            status, output, messages = self.troupe("run", f"{G}/dead_fetch.json", "--feed", "x=3",
                                                   "--fetch", "low", ranks=ranks)
            self.assertEqual((status, output), (1, ""))
            self.assertIn(f'{G}/dead_fetch.json:6:3: node "low" (Neg): fetched output 0 has no '
                          "value in step 0: it is behind output 0 (false) of "
                          f'{G}/dead_fetch.json:5:3: node "switch" (Switch), a branch that was not '
                          "taken; fetch the Merge behind the branches", messages)
            got = self.result("run", f"{G}/dead_fetch.json", "--feed", "x=3", "--fetch", "high",
                              ranks=ranks)
            self.assertEqual(got, {"high": 9})


class Loops(support.Case):
    def test_while(self):
        for n, total in ((0, 0), (1, 1), (5, 15), (100, 5050)):
            for ranks in (0, 2, 3):
                got = self.result("run", "examples/while.json", "--feed", f"n={n}", "--fetch",
                                  "total", ranks=ranks)
                self.assertEqual(got, {"total": total})

    def test_nested_while(self):
        for n, cells in ((0, 0), (1, 1), (5, 15), (12, 78)):
            for ranks in (0, 2):
                got = self.result("run", "examples/nested_while.json", "--feed", f"n={n}",
                                  "--fetch", "cells", ranks=ranks)
                self.assertEqual(got, {"cells": cells})

    def test_a_value_that_grows(self):
        for n, y in ((0, [1]), (1, [1, 2]), (2, [1, 2, 3, 4])):
            got = self.result("run", f"{G}/loop_growing.json", "--feed", f"n={n}", "--fetch", "y")
            self.assertEqual(got, {"y": y})

    def test_a_loop_changes_state_in_every_iteration(self):
        for steps, total in ((1, 0), (2, 10), (5, 40)):
            for ranks in (0, 2):
                got = self.result("run", f"{G}/loop_state.json", "--fetch", "loop", "--fetch",
                                  "total", "--steps", str(steps), ranks=ranks)
                self.assertEqual(got, {"loop": 4, "total": total})

    def test_functions_in_graphdefs_form(self):
        for n, total in ((0, 0), (5, 15)):
            got = self.result("run", f"{G}/functions_graphdef.json", "--feed", f"n={n}", "--fetch",
                              "total")
            self.assertEqual(got, {"total": total})

    def test_the_loop_of_a_real_model(self):
        graph = "tests/unit/graph/graphs/handtrack_loop.json"
        for ranks in (0, 2):
            got = self.result("run", graph, "--fetch", "first", "--fetch", "second", ranks=ranks)
            images = [[1, 2, 3], [4, 5, 6]]
            self.assertEqual(got, {"first": [[2 * (2 * x - 1) for x in row] for row in images],
                                   "second": [[320, 320, 6]] * 2})


    def test_replicas_have_loops_of_their_own(self):
        run = ["run", f"{G}/train_loop.json", "--target", "train", "--fetch", "w", "--steps", "3"]
        alone = self.result(*run, "--feed", "x=[[1,2],[3,4],[5,6],[7,8]]")
        self.assertNotEqual(alone["w"], [[2], [1]])
        got = self.result(*run, "--strategy", "data-parallel", "--feed", "x=[[1,2],[3,4]]", "--feed",
                          "replica_1/x=[[5,6],[7,8]]", ranks=2)
        for one, other in zip(alone["w"], got["w"]):
            self.assertAlmostEqual(one[0], other[0], places=5)


class Recursion(support.Case):
    def test_factorial(self):
        for n, y in ((0, 1), (1, 1), (5, 120), (12, 479001600)):
            for ranks in (0, 2):
                got = self.result("run", "examples/factorial.json", "--feed", f"n={n}", "--fetch",
                                  "factorial", ranks=ranks)
                self.assertEqual(got, {"factorial": y})

    def test_trees_loops_and_functions_that_call_each_other(self):
        fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
        for n in (0, 1, 6, 9):
            for ranks in (0, 2):
                got = self.result("run", f"{G}/recursion.json", "--feed", f"n={n}", "--fetch",
                                  "fib", "--fetch", "even", "--fetch", "sum", "--fetch", "count",
                                  ranks=ranks)
                self.assertEqual(got, {"fib": fib[n], "even": n % 2 == 0, "sum": sum(fib[:n + 1]),
                                       "count": n * (n + 1) // 2})

    def test_recursion_without_end(self):
        status, output, messages = self.troupe("run", "examples/factorial.json", "--feed",
                                               "n=1000000", "--fetch", "factorial")
        self.assertEqual((status, output), (3, ""))
        self.assertIn('node "factorial/y/else/rest" (Call)', messages)
        self.assertIn("frames are nested 10000 deep: does the recursion end?", messages)


if __name__ == "__main__":
    unittest.main()
