"""`troupe bench`: what it prints, and what it refuses. How long things take is never asserted."""
import json
import math
import unittest

import support

NODES = {"chain": 100000, "fan": 10002, "layered": 100000}

WRONG = [
    (["bench"], 'troupe: bench wants BENCHMARK; "troupe bench --help" says more\n'),
    (["bench", "engin"], 'troupe: no benchmark "engin": there is "engine"\n'),
    (["bench", "engine", "more"],
     'troupe: bench takes one argument, and "more" is more than that\n'),
    (["bench", "engine", "--graph", "ring"],
     'troupe: --graph wants "chain", "fan" or "layered", got "ring"\n'),
    (["bench", "engine", "--format", "xml"],
     'troupe: --format wants "text" or "json", got "xml"\n'),
    (["bench", "engine", "--runs", "0"],
     'troupe: --runs wants a whole number from 1 to 10000, got "0"\n'),
    (["bench", "engine", "--workers", "none"],
     'troupe: --workers wants a whole number from 1 to 4096, got "none"\n'),
    (["bench", "engine", "--work-ns", "-1"],
     'troupe: --work-ns wants a whole number from 1 to 1000000, got "-1"\n'),
    (["bench", "engine", "--rums", "1"],
     'troupe: unknown option "--rums" (did you mean "--runs"?)\n'),
    (["bench", "engine", "--steps", "3"],
     'troupe: unknown option "--steps"; "troupe bench --help" lists them\n'),
]


class Bench(support.Case):
    def rows(self, *arguments, ranks=0):
        """The rows of a benchmark of the engine, each checked by itself."""
        status, output, messages = self.troupe("bench", "engine", "--format", "json", *arguments,
                                               ranks=ranks)
        self.assertEqual((status, messages), (0, ""))
        rows = json.loads(output)
        for row in rows:
            self.assertEqual(set(row), {"graph", "nodes", "workers", "runs", "ns_per_node"})
            self.assertEqual(row["nodes"], NODES[row["graph"]])
            times = row["ns_per_node"]
            self.assertEqual(set(times), {"median", "min", "max"})
            self.assertTrue(all(math.isfinite(value) for value in times.values()), times)
            self.assertLess(0, times["min"])
            self.assertLessEqual(times["min"], times["median"])
            self.assertLessEqual(times["median"], times["max"])
        return rows

    def test_json(self):
        rows = self.rows("--runs", "2")
        self.assertEqual([(row["graph"], row["workers"], row["runs"]) for row in rows],
                         [(graph, workers, 2) for graph in NODES for workers in (1, 2)])

    def test_one_graph(self):
        rows = self.rows("--runs", "2", "--graph", "chain")
        self.assertEqual([(row["graph"], row["workers"]) for row in rows],
                         [("chain", 1), ("chain", 2)])

    def test_runs_by_default(self):
        rows = self.rows("--graph", "fan", "--workers", "1")
        self.assertEqual([row["runs"] for row in rows], [9])

    def test_workers(self):
        rows = self.rows("--runs", "1", "--graph", "fan", "--workers", "3")
        self.assertEqual([row["workers"] for row in rows], [3])

    def test_work(self):
        """A node of one worker lasts at least as long as it works."""
        row, = self.rows("--runs", "1", "--graph", "fan", "--workers", "1", "--work-ns", "2000")
        self.assertGreaterEqual(row["ns_per_node"]["min"], 2000)

    def test_text(self):
        arguments = ["bench", "engine", "--runs", "2", "--graph", "fan"]
        status, output, messages = self.troupe(*arguments)
        self.assertEqual((status, messages), (0, ""))
        header, *rows = output.splitlines()
        self.assertEqual(header.split()[:4], ["graph", "nodes", "workers", "runs"])
        self.assertEqual([row.split()[:4] for row in rows],
                         [["fan", "10002", "1", "2"], ["fan", "10002", "2", "2"]])
        for row in rows:
            median, least, most = map(float, row.split()[4:])
            self.assertTrue(0 < least <= median <= most, row)
        self.assertEqual(self.troupe(*arguments, "--format", "text")[0], 0)

    def test_one_rank_prints(self):
        rows = self.rows("--runs", "1", "--graph", "fan", "--workers", "1", ranks=2)
        self.assertEqual(len(rows), 1)

    def test_wrong(self):
        for arguments, message in WRONG:
            with self.subTest(arguments=arguments):
                self.assert_fails(arguments, 2, message)

    def test_wrong_on_ranks(self):
        self.assert_fails(*[(arguments, 2, message) for arguments, message in WRONG][1], ranks=2)

    def test_help(self):
        status, output, _ = self.troupe("bench", "--help")
        self.assertEqual(status, 0)
        for option in ("--graph", "--runs", "--workers", "--work-ns", "--format"):
            self.assertIn(option, output)


if __name__ == "__main__":
    unittest.main()
