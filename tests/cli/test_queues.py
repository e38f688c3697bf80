"""Queues: order, room, closing, waiting without a worker, failures under waiters."""
import json
import os
import tempfile
import unittest

import support

TYPES = {"component_types": ["float32"]}


def node(name, op, *inputs, device=None, **attrs):
    made = {"name": name, "op": op}
    if inputs:
        made["input"] = list(inputs)
    if attrs:
        made["attr"] = attrs
    if device is not None:
        made["device"] = f"/task:{device}"
    return made


def const(name, value, dtype="float32", **options):
    return node(name, "Const", dtype=dtype, value=value, **options)


class Queues(support.Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, nodes):
        path = os.path.join(self.folder.name, "graph.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"node": nodes}, file)
        return path

    def run_nodes(self, nodes, *arguments, ranks=0):
        return self.result("run", self.write(nodes), *arguments, ranks=ranks)

    def fails(self, nodes, *arguments, ranks=0, status=1):
        got, output, messages = self.troupe("run", self.write(nodes), *arguments, ranks=ranks)
        self.assertEqual((got, output), (status, ""), messages)
        return messages

    def pipeline(self, ranks):
        """A producer on the first rank, a queue with room for two on the last, a consumer there."""
        last = ranks - 1 if ranks > 1 else None
        first = 0 if ranks > 1 else None
        return [node("queue", "FIFOQueueV2", device=last, capacity=2, **TYPES),
                const("x", [1.0, 2.0, 3.0, 4.0, 5.0], device=first),
                node("put", "QueueEnqueueManyV2", "queue", "x"),
                node("one", "QueueDequeueV2", "queue", **TYPES),
                const("n", 4, dtype="int32"),
                node("rest", "QueueDequeueManyV2", "queue", "n", "^one", **TYPES),
                node("size", "QueueSizeV2", "queue", "^rest")]

    def test_order_and_room_on_ranks(self):
        for ranks in (0, 1, 2, 3):
            got = self.run_nodes(self.pipeline(ranks), "--fetch", "one", "--fetch", "rest",
                                 "--fetch", "size", "--target", "put", "--steps", "10", "--window",
                                 "1", ranks=ranks)
            self.assertEqual(got, {"one": 1.0, "rest": [2.0, 3.0, 4.0, 5.0], "size": 0})

    def test_ten_thousand_wait_on_one_worker(self):
        many = 10000
        nodes = [node("queue", "FIFOQueueV2", component_types=["int32"]),
                 const("all", list(range(many)), dtype="int32"),
                 node("put", "QueueEnqueueManyV2", "queue", "all"),
                 node("sum", "AddN", *[f"d{i}" for i in range(many)])]
        nodes += [node(f"d{i}", "QueueDequeueV2", "queue", component_types=["int32"])
                  for i in range(many)]
        got = self.run_nodes(nodes, "--fetch", "sum", "--target", "put", "--workers", "1")
        self.assertEqual(got, {"sum": many * (many - 1) // 2})

    def test_priority(self):
        types = {"component_types": ["int64", "string"]}
        got = self.run_nodes([node("queue", "PriorityQueueV2", **types),
                              const("p", [5, 1, 3, 1], dtype="int64"),
                              const("v", ["e", "a", "c", "b"], dtype="string"),
                              node("put", "QueueEnqueueManyV2", "queue", "p", "v"),
                              const("n", 4, dtype="int32"),
                              node("all", "QueueDequeueManyV2", "queue", "n", "^put", **types)],
                             "--fetch", "all", "--fetch", "all:1")
        self.assertEqual(got, {"all": [1, 1, 3, 5], "all:1": ["a", "b", "c", "e"]})

    def test_shuffle_is_a_permutation_and_repeats(self):
        nodes = [node("queue", "RandomShuffleQueueV2", min_after_dequeue=0, seed=7,
                      component_types=["int32"]),
                 const("x", list(range(50)), dtype="int32"),
                 node("put", "QueueEnqueueManyV2", "queue", "x"),
                 const("n", 50, dtype="int32"),
                 node("all", "QueueDequeueManyV2", "queue", "n", "^put",
                      component_types=["int32"])]
        first = self.run_nodes(nodes, "--fetch", "all", "--seed", "3")["all"]
        self.assertEqual(sorted(first), list(range(50)))
        self.assertNotEqual(first, list(range(50)))
        self.assertEqual(self.run_nodes(nodes, "--fetch", "all", "--seed", "3")["all"], first)

    def test_padding(self):
        types = {"component_types": ["float32"], "shapes": [[-1, 2]]}
        got = self.run_nodes([node("queue", "PaddingFIFOQueueV2", **types),
                              const("a", [[1.0, 2.0]]), const("b", [[3.0, 4.0], [5.0, 6.0]]),
                              node("put_a", "QueueEnqueueV2", "queue", "a"),
                              node("put_b", "QueueEnqueueV2", "queue", "b", "^put_a"),
                              const("n", 2, dtype="int32"),
                              node("both", "QueueDequeueManyV2", "queue", "n", "^put_b", **TYPES)],
                             "--fetch", "both")
        self.assertEqual(got, {"both": [[[1.0, 2.0], [0.0, 0.0]], [[3.0, 4.0], [5.0, 6.0]]]})

    def test_what_is_left_of_a_closed_queue(self):
        nodes = [node("queue", "FIFOQueueV2", **TYPES), const("x", [1.0, 2.0]),
                 node("put", "QueueEnqueueManyV2", "queue", "x"),
                 node("close", "QueueCloseV2", "queue", "^put"),
                 const("n", 3, dtype="int32"),
                 node("left", "QueueDequeueUpToV2", "queue", "n", **TYPES),
                 node("closed", "QueueIsClosedV2", "queue", "^close")]
        got = self.run_nodes(nodes, "--fetch", "left", "--fetch", "closed", "--target", "close")
        self.assertEqual(got, {"left": [1.0, 2.0], "closed": True})

    def test_closed_under_a_waiter(self):
        for ranks in (0, 2):
            nodes = [node("queue", "FIFOQueueV2", device=1 if ranks else None, **TYPES),
                     const("x", [1.0]), node("put", "QueueEnqueueManyV2", "queue", "x"),
                     node("close", "QueueCloseV2", "queue", "^put"), const("n", 3, dtype="int32"),
                     node("many", "QueueDequeueManyV2", "queue", "n", **TYPES)]
            messages = self.fails(nodes, "--fetch", "many", "--target", "close", ranks=ranks)
            self.assertRegex(messages, r'node "many" \(QueueDequeueManyV2\) on rank \d.*: queue '
                                       r'"queue" is closed and has insufficient elements '
                                       r'\(requested 3, current size 1\)')

    def test_nothing_goes_into_a_closed_queue(self):
        nodes = [node("queue", "FIFOQueueV2", **TYPES), const("x", 1.0),
                 node("close", "QueueCloseV2", "queue"),
                 node("put", "QueueEnqueueV2", "queue", "x", "^close")]
        self.assertIn('queue "queue" is closed', self.fails(nodes, "--target", "put"))

    def test_nobody_will_feed_it(self):
        for ranks in (0, 1, 3):
            nodes = [node("queue", "FIFOQueueV2", device=2 if ranks == 3 else None, **TYPES),
                     node("never", "QueueDequeueV2", "queue", **TYPES)]
            messages = self.fails(nodes, "--fetch", "never", ranks=ranks)
            self.assertRegex(messages, r'deadlock: no firing can complete any more; .*node "never"')

    def test_a_failure_releases_waiters(self):
        for ranks in (0, 2):
            nodes = [node("queue", "FIFOQueueV2", device=0 if ranks else None, **TYPES),
                     node("never", "QueueDequeueV2", "queue", **TYPES),
                     const("no", False, dtype="bool", device=1 if ranks else None),
                     node("check", "Assert", "no", "no", device=1 if ranks else None)]
            messages = self.fails(nodes, "--fetch", "never", "--target", "check", ranks=ranks)
            self.assertRegex(messages, r'node "check" \(Assert\)')

    def test_a_deadline_releases_waiters(self):
        nodes = [node("queue", "FIFOQueueV2", **TYPES),
                 node("never", "QueueDequeueV2", "queue", **TYPES)]
        messages = self.fails(nodes, "--fetch", "never", "--timeout", "0.05")
        self.assertRegex(messages, "time of .* is up|deadlock")

    def test_wrong_elements(self):
        queue = node("queue", "FIFOQueueV2", component_types=["float32"], shapes=[[2]])
        cases = [([1.0], "component 0 has shape [1]: the queue holds [2]", "float32"),
                 ([1, 2], "component 0 is int32: the queue holds float32", "int32")]
        for value, message, dtype in cases:
            nodes = [queue, const("x", value, dtype=dtype),
                     node("put", "QueueEnqueueV2", "queue", "x")]
            self.assertIn(message, self.fails(nodes, "--target", "put", status=2))
        nodes = [queue, const("x", [1.0, 2.0]), node("put", "QueueEnqueueV2", "queue", "x", "x")]
        self.assertIn("the queue's elements have 1 components: got 2",
                      self.fails(nodes, "--target", "put", status=2))

    def accumulator(self, ranks, **attrs):
        place = 1 if ranks > 1 else None
        return [node("sum", "ConditionalAccumulator", device=place, dtype="float32", **attrs),
                const("step", 0, dtype="int64"),
                const("a", [1.0, 2.0], device=0 if ranks > 1 else None), const("b", [3.0, 6.0]),
                node("put_a", "AccumulatorApplyGradient", "sum", "step", "a"),
                node("put_b", "AccumulatorApplyGradient", "sum", "step", "b"),
                const("two", 2, dtype="int32"),
                node("take", "AccumulatorTakeGradient", "sum", "two", dtype="float32"),
                node("left", "AccumulatorNumAccumulated", "sum", "^take")]

    def test_an_accumulator(self):
        for ranks in (0, 1, 2, 3):
            for reduction, wanted in (("MEAN", [2.0, 4.0]), ("SUM", [4.0, 8.0])):
                got = self.run_nodes(self.accumulator(ranks, reduction_type=reduction), "--fetch",
                                     "take", "--fetch", "left", "--target", "put_a", "--target",
                                     "put_b", ranks=ranks)
                self.assertEqual(got, {"take": wanted, "left": 0})

    def test_an_accumulator_drops_what_is_stale(self):
        nodes = self.accumulator(0, shape=[2])
        nodes += [const("one", 1, dtype="int32"), const("three", 3, dtype="int64"),
                  node("set", "AccumulatorSetGlobalStep", "sum", "three"),
                  node("stale", "AccumulatorApplyGradient", "sum", "step", "a", "^set"),
                  node("count", "AccumulatorNumAccumulated", "sum", "^stale")]
        self.assertEqual(self.run_nodes(nodes, "--fetch", "count"), {"count": 0})
        self.assertIn('"num_required" is -2: wants 1 or more', self.fails(
            nodes + [const("minus", -2, dtype="int32"),
                     node("bad", "AccumulatorTakeGradient", "sum", "minus", dtype="float32")],
            "--fetch", "bad", status=2))
        self.assertIn("the gradient has shape [3]: the accumulator holds [2]", self.fails(
            nodes + [const("c", [1.0, 2.0, 3.0]),
                     node("bad", "AccumulatorApplyGradient", "sum", "step", "c")],
            "--target", "bad", status=2))

    def test_an_accumulator_that_gets_too_little(self):
        for ranks in (0, 2):
            messages = self.fails(self.accumulator(ranks), "--fetch", "take", "--target", "put_a",
                                  ranks=ranks)
            self.assertRegex(messages, r'deadlock: .*node "take" \(AccumulatorTakeGradient\)')

    def test_a_mutex_guards_a_read_and_a_write(self):
        # Each of 20 branches reads a queue of one number and puts one more in: together they
        # would block or lose numbers without the lock.
        for workers in ("1", "4"):
            nodes = [node("lock", "MutexV2"), node("queue", "FIFOQueueV2", capacity=1, **TYPES),
                     const("zero", 0.0), const("one", 1.0),
                     node("start", "QueueEnqueueV2", "queue", "zero")]
            for i in range(20):
                nodes += [node(f"held{i}", "MutexLock", "lock"),
                          node(f"old{i}", "QueueDequeueV2", "queue", f"^held{i}", **TYPES),
                          node(f"new{i}", "AddV2", f"old{i}", "one"),
                          node(f"put{i}", "QueueEnqueueV2", "queue", f"new{i}"),
                          node(f"done{i}", "ConsumeMutexLock", f"held{i}", f"^put{i}")]
            nodes += [node("all", "NoOp", *[f"^done{i}" for i in range(20)]),
                      node("last", "QueueDequeueV2", "queue", "^all", **TYPES)]
            got = self.run_nodes(nodes, "--fetch", "last", "--target", "start", "--steps", "5",
                                 "--window", "1", "--workers", workers)
            self.assertEqual(got, {"last": 20.0})

    def test_a_barrier(self):
        types = {"component_types": ["float32", "int32"]}
        nodes = [node("barrier", "Barrier", **types),
                 const("keys", ["x", "y", "z"], dtype="string"),
                 const("some", ["z", "x"], dtype="string"),
                 const("a", [1.0, 2.0, 3.0]), const("b", [30, 10], dtype="int32"),
                 node("put_a", "BarrierInsertMany", "barrier", "keys", "a", component_index=0),
                 node("put_b", "BarrierInsertMany", "barrier", "some", "b", "^put_a",
                      component_index=1),
                 const("two", 2, dtype="int32"),
                 node("take", "BarrierTakeMany", "barrier", "two", **types),
                 node("ready", "BarrierReadySize", "barrier", "^take"),
                 node("left", "BarrierIncompleteSize", "barrier", "^take")]
        got = self.run_nodes(nodes, "--fetch", "take:1", "--fetch", "take:2", "--fetch", "take:3",
                             "--fetch", "ready", "--fetch", "left", "--target", "put_b")
        self.assertEqual(got, {"take:1": ["z", "x"], "take:2": [3.0, 1.0], "take:3": [30, 10],
                               "ready": 0, "left": 1})
        again = nodes + [node("again", "BarrierInsertMany", "barrier", "keys", "a", "^put_a",
                              component_index=0)]
        self.assertIn('key "x" has component 0 already',
                      self.fails(again, "--target", "again", status=2))
        closed = nodes + [node("close", "BarrierClose", "barrier", "^put_a"),
                          const("new", ["w"], dtype="string"), const("v", [1.0]),
                          node("late", "BarrierInsertMany", "barrier", "new", "v", "^close",
                               component_index=0)]
        self.assertIn('the barrier is closed to new keys: "w"',
                      self.fails(closed, "--target", "late"))

    def test_examples_of_each_kind(self):
        cases = [("queue_kinds", ["fifo_all", "shuffle_sum", "priority_all:1", "padding_all"], "put",
                  {"fifo_all": [1.0, 2.0, 3.0, 4.0], "shuffle_sum": 10.0,
                   "priority_all:1": ["a", "again", "b", "c"],
                   "padding_all": [[1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 0.0, 0.0]]}),
                 ("accumulator", ["mean"], "workers", {"mean": [2.0, 4.0]}),
                 ("barrier", ["take:1", "take:2", "take:3"], "insert_numbers",
                  {"take:1": ["y", "x"], "take:2": [2.5, 1.5], "take:3": [20, 10]}),
                 ("mutex", ["balance"], "open", {"balance": 15.0})]
        for name, fetches, target, wanted in cases:
            for ranks in (0, 2):
                arguments = [word for fetch in fetches for word in ("--fetch", fetch)]
                got = self.result("run", f"examples/{name}.json", *arguments, "--target", target,
                                  ranks=ranks)
                self.assertEqual(got, wanted)

    def test_the_example(self):
        for ranks in (0, 1, 2, 3):
            got = self.result("run", "examples/queue_pipeline.json", ranks=ranks)
            self.assertEqual((got["total"], got["examples"]), (5050.0, 100.0))


if __name__ == "__main__":
    unittest.main()
