"""Loops of primitives: on one rank and spread over several, nested, not taken, failing inside."""
import itertools
import json
import os
import tempfile
import unittest

import support


class Graph:
    """A graph under construction; a node's name is what its method returns."""

    def __init__(self, place=lambda name: None):
        self.nodes = []
        self.place = place
        self.frames = itertools.count()

    def add(self, op, *inputs, name=None, device=None, **attrs):
        node = {"name": name or f"{op}_{len(self.nodes)}".lower(), "op": op}
        if inputs:
            node["input"] = list(inputs)
        if attrs:
            node["attr"] = attrs
        rank = device if device is not None else self.place(node["name"])
        if rank is not None:
            node["device"] = f"/task:{rank}"
        self.nodes.append(node)
        return node["name"]

    def number(self, value, **options):
        return self.add("Const", dtype="int32", value=value, **options)

    def loop(self, start, limit, constants, body, parallel=10):
        """x = start; while (x < limit) x = body(x, *constants): x's Exit."""
        frame = {"frame_name": f"frame{next(self.frames)}", "parallel_iterations": parallel}
        enter = self.add("Enter", start, **frame)
        inside = [self.add("Enter", value, is_constant=True, **frame)
                  for value in [limit, *constants]]
        head = f"head_{len(self.nodes)}"
        back = f"next_{len(self.nodes)}"
        self.add("Merge", enter, back, name=head)
        cond = self.add("LoopCond", self.add("Less", head, inside[0]))
        gate = self.add("Switch", head, cond)
        self.add("NextIteration", body(gate + ":1", *inside[1:]), name=back)
        return self.add("Exit", gate)

    def branch(self, condition, value):
        """The value where the condition is true: dead where it is not."""
        return self.add("Switch", value, condition) + ":1"


class Loops(support.Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, graph):
        path = os.path.join(self.folder.name, "graph.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"node": graph.nodes}, file)
        return path

    def spread(self, ranks):
        """Places nodes on ranks in turn: every edge of a loop crosses."""
        turn = itertools.count()
        return Graph((lambda name: next(turn) % ranks) if ranks > 1 else (lambda name: None))

    def counting(self, ranks, parallel=10):
        graph = self.spread(ranks)
        graph.add("Identity", graph.loop(graph.number(0), graph.number(10), [graph.number(3)],
                                         lambda x, three: graph.add("AddV2", x, three),
                                         parallel=parallel), name="out")
        return graph

    def nested(self, ranks):
        graph = self.spread(ranks)

        def inner(x, limit, one):
            times = graph.loop(x, limit, [one], lambda y, unit: graph.add("AddV2", y, unit))
            return graph.add("AddV2", times, one)

        graph.add("Identity", graph.loop(graph.number(0), graph.number(40),
                                         [graph.number(12), graph.number(1)], inner), name="out")
        return graph

    def test_a_loop_on_1_to_5_ranks(self):
        for ranks in range(6):
            for parallel in (1, 10):
                path = self.write(self.counting(ranks, parallel))
                self.assertEqual(self.result("run", path, "--fetch", "out", ranks=ranks),
                                 {"out": 12})

    def test_many_steps_in_flight(self):
        for ranks in (0, 2, 4):
            path = self.write(self.counting(ranks))
            for window in ("1", "3", "8"):
                got = self.result("run", path, "--fetch", "out", "--steps", "60", "--window",
                                  window, ranks=ranks)
                self.assertEqual(got, {"out": 12})

    def test_nested_loops(self):
        # The inner loop counts to 12 from x, which is past 12 after the first time.
        expected = 0
        while expected < 40:
            expected = max(expected, 12) + 1
        for ranks in (0, 1, 2, 3, 5):
            path = self.write(self.nested(ranks))
            got = self.result("run", path, "--fetch", "out", "--steps", "5", "--window", "2",
                              ranks=ranks)
            self.assertEqual(got, {"out": expected})

    def test_a_loop_that_is_not_taken(self):
        for ranks in (0, 2, 3):
            for taken in (True, False):
                graph = self.spread(ranks)
                condition = graph.add("Const", dtype="bool", value=taken)
                graph.number(0, name="zero")
                for name, value in (("limit", 10), ("one", 1)):
                    graph.number(value, name=name)
                times = graph.loop(graph.branch(condition, "zero"),
                                   graph.branch(condition, "limit"),
                                   [graph.branch(condition, "one")],
                                   lambda x, one: graph.add("AddV2", x, one))
                other = graph.add("Switch", graph.number(-5), condition)
                graph.add("Merge", times, other, name="out")
                got = self.result("run", self.write(graph), "--fetch", "out", ranks=ranks)
                self.assertEqual(got, {"out": 10 if taken else -5})

    def test_state_inside_a_loop(self):
        for ranks in (0, 2):
            graph = self.spread(ranks)
            graph.add("VariableV2", name="count", device=0 if ranks else None, dtype="int32",
                      shape=[], initializer="nothing")
            graph.number(0, name="nothing")

            def body(x, one):
                graph.add("AssignAdd", "count", one, name="bump", device=0 if ranks else None)
                graph.nodes[-1]["input"].append("^" + x.split(":")[0] + "_in")
                return graph.add("AddV2", x, one)

            def with_pivot(x, one):
                graph.add("Identity", x, name=x.split(":")[0] + "_in")
                return body(x, one)

            graph.loop(graph.number(0), graph.number(4), [graph.number(1)], with_pivot)
            graph.add("Identity", "count", name="read")
            graph.add("NoOp", "^bump", name="train")
            got = self.result("run", self.write(graph), "--fetch", "read", "--target", "bump",
                              "--steps", "7", "--window", "3", ranks=ranks)
            # A step reads what the six before have added, four each.
            self.assertEqual(got, {"read": 24})

    def test_a_failure_inside(self):
        for ranks in (0, 2, 3):
            graph = self.spread(ranks)

            def body(x, one, limit):
                graph.add("Less", x, limit, name="small")
                graph.add("Assert", "small", x, name="check")
                graph.add("AddV2", x, one, name="sum")
                graph.nodes[-1]["input"].append("^check")
                return "sum"

            graph.add("Identity", graph.loop(graph.number(0), graph.number(9),
                                             [graph.number(1), graph.number(5)], body), name="out")
            status, output, messages = self.troupe("run", self.write(graph), "--fetch", "out",
                                                   "--steps", "3", ranks=ranks)
            self.assertEqual((status, output), (1, ""))
            self.assertRegex(messages, r'node "check" \(Assert\).*\b5\b')
            self.assertEqual(messages.count("\n"), 1, messages)

    def test_what_is_inside_is_not_fetched(self):
        path = self.write(self.counting(0))
        status, _, messages = self.troupe("run", path, "--fetch", "head_6")
        self.assertEqual(status, 2)
        self.assertIn('is inside of loop "frame0" and cannot be fetched', messages)


if __name__ == "__main__":
    unittest.main()
