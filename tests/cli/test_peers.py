"""bench/engine/engine_peers runs every graph beside its peers: the floor, which is always built, here."""
import json
import os
import subprocess
import unittest

PEERS = os.environ["ENGINE_PEERS"]


def run(*arguments):
    return subprocess.run([PEERS, *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)


class Peers(unittest.TestCase):
    def test_floor(self):
        done = run("--peer", "floor", "--runs", "2", "--workers", "1", "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = json.loads(done.stdout)
        self.assertEqual([(row["graph"], row["peer"], row["workers"], row["runs"]) for row in rows],
                         [(graph, peer, 1, 2) for graph in ("chain", "fan", "layered")
                          for peer in ("troupe", "floor")])
        for row in rows:
            times = row["ns_per_node"]
            self.assertTrue(0 < times["min"] <= times["median"] <= times["max"], row)
            self.assertGreater(row["times_troupe"], 0)

    def test_one_graph(self):
        done = run("--peer", "floor", "--graph", "fan", "--runs", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([line.split()[:3] for line in done.stdout.splitlines()],
                         [["fan", "troupe", "1"], ["fan", "floor", "1"], ["fan", "troupe", "2"],
                          ["fan", "floor", "1"]])

    def test_wrong(self):
        for arguments in (["--peer", "troop"], ["--graph", "ring"], ["--runs", "0"], ["--format"],
                          ["--wrong", "1"]):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("usage: engine_peers", done.stderr)


if __name__ == "__main__":
    unittest.main()
