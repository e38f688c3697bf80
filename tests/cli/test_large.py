"""Graphs of 100,000 nodes, which only work that grows in proportion to the nodes gets through in time."""
import json
import os
import sys
import tempfile
import unittest

import support

sys.path.insert(0, os.path.join(support.ROOT, "bench", "cast"))
import graphs  # noqa: E402

NODES = 100000


class Large(support.Case):
    def check(self, kind):
        nodes, value = graphs.KINDS[kind](NODES)
        self.assertGreater(len(nodes), 0.9 * NODES)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, kind + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"node": nodes}, file)
            got = self.result("run", path, "--fetch", "out", "--workers", "1")
        self.assertEqual(got, {"out": value})

    def test_chain(self):
        self.check("chain")

    def test_layered(self):
        self.check("layered")

    def test_fan(self):
        self.check("fan")

    def test_variables(self):
        self.check("variables")


if __name__ == "__main__":
    unittest.main()
