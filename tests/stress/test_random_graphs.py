"""Random graphs on ranks, workers and windows drawn at random, against a sequential interpreter.

TROUPE_RANDOM_GRAPHS says how many graphs, TROUPE_RANDOM_SEED from which number on.
"""
import json
import os
import random
import sys
import tempfile
import unittest

import graphs
import interpreter

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "cli"))
import support  # noqa: E402

GRAPHS = int(os.environ.get("TROUPE_RANDOM_GRAPHS", "500"))
SEED = int(os.environ.get("TROUPE_RANDOM_SEED", "1"))


class RandomGraphs(support.Case):
    def check(self, seed):
        draw = random.Random(seed)
        ranks = draw.randint(1, 4)
        steps = draw.randint(1, 6)
        options = ["--steps", str(steps), "--workers", str(draw.choice([1, 2, 3])),
                   "--window", str(draw.randint(1, 4))]
        graph, fetches = graphs.make(seed, ranks)
        wanted = dict(zip(fetches, interpreter.interpret(graph, fetches, steps)))
        for fetch in fetches:
            options += ["--fetch", fetch]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"seed_{seed}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(graph, file)
            got = self.result("run", path, *options, ranks=ranks if ranks > 1 else 0, seconds=120)
        wrong = {fetch: (got.get(fetch), value) for fetch, value in wanted.items()
                 if got.get(fetch) != value}
        self.assertEqual(wrong, {}, f"TROUPE_RANDOM_SEED={seed} on {ranks} ranks, {options[:6]}")

    def test_results(self):
        for seed in range(SEED, SEED + (GRAPHS + graphs.PARTS - 1) // graphs.PARTS):
            with self.subTest(seed=seed):
                self.check(seed)


if __name__ == "__main__":
    unittest.main()
