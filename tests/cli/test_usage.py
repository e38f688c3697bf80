"""Wrong usage: one message, exit status 2, with and without mpirun; help; standard output."""
import os
import unittest

import support

AFFINE = "examples/affine.json"
NAMES = "\"troupe --help\" lists them\n"

WRONG = [
    ([], "troupe: no command; " + NAMES),
    (["rum"], 'troupe: unknown command "rum" (did you mean "run"?)\n'),
    (["dance"], 'troupe: unknown command "dance"; ' + NAMES),
    (["--wrong"], 'troupe: unknown option "--wrong"; ' + NAMES),
    (["run"], 'troupe: run wants GRAPH; "troupe run --help" says more\n'),
    (["run", AFFINE, "more"], 'troupe: run takes one argument, and "more" is more than that\n'),
    (["info", "more"], 'troupe: info takes no argument, and "more" is more than that\n'),
    (["run", AFFINE, "--fecth", "y"],
     'troupe: unknown option "--fecth" (did you mean "--fetch"?)\n'),
    (["run", AFFINE, "--checkpoint=x"],
     'troupe: unknown option "--checkpoint"; "troupe run --help" lists them\n'),
    (["check", AFFINE, "--steps", "1"],
     'troupe: unknown option "--steps"; "troupe check --help" lists them\n'),
    (["run", AFFINE, "-x"], 'troupe: unknown option "-x"; "troupe run --help" lists them\n'),
    (["run", AFFINE, "--steps"], 'troupe: option "--steps" wants a value\n'),
    (["run", AFFINE, "--steps", "0"], 'troupe: --steps wants a whole number from 1 to '
                                      '9223372036854775807, got "0"\n'),
    (["run", AFFINE, "--workers", "many"],
     'troupe: --workers wants a whole number from 1 to 4096, got "many"\n'),
    (["run", AFFINE, "--window", "-1"],
     'troupe: --window wants a whole number from 1 to 1024, got "-1"\n'),
    (["run", AFFINE, "--seed", "1x"], 'troupe: --seed wants a whole number from 1 to '
                                      '18446744073709551615, got "1x"\n'),
    (["run", AFFINE, "--progress", "some"],
     'troupe: --progress wants "auto", "always" or "never", got "some"\n'),
    (["run", AFFINE, "--feed", "x"], 'troupe: --feed wants NAME=VALUE, got "x"\n'),
    (["run", AFFINE, "--feed", "=1"], 'troupe: --feed wants NAME=VALUE, got "=1"\n'),
    (["run", AFFINE, "--feed", "x=1", "--feed", "x=2"], 'troupe: --feed "x" is given twice\n'),
    (["run", AFFINE, "--fetch", "y", "--fetch", "y"], 'troupe: --fetch "y" is given twice\n'),
    (["run", AFFINE, "--fetch", "y=out.txt"],
     'troupe: --fetch writes files whose names end in ".npy", got "out.txt"\n'),
    (["run", AFFINE, "--feed", "x=[[1,2]]"],
     "troupe: --feed without --fetch or --target: name what to run\n"),
    (["run", AFFINE], f'troupe: {AFFINE} has neither "train" nor "loop": name what to run with '
                      "--fetch or --target\n"),
]


class Usage(support.Case):
    def test_wrong(self):
        for arguments, message in WRONG:
            with self.subTest(arguments=arguments):
                self.assert_fails(arguments, 2, message)

    def test_wrong_on_ranks(self):
        for arguments in (["run", AFFINE, "--fecth", "y"], ["run", AFFINE]):
            with self.subTest(arguments=arguments):
                message = dict((tuple(a), m) for a, m in WRONG)[tuple(arguments)]
                self.assert_fails(arguments, 2, message, ranks=2)

    def test_log_level(self):
        status, output, messages = self.troupe("run", AFFINE, "--log", "loud")
        self.assertEqual((status, output), (2, ""))
        for word in ('"loud"', "error", "warning", "info", "debug"):
            self.assertIn(word, messages)

    def test_help(self):
        status, output, messages = self.troupe("--help")
        self.assertEqual((status, messages), (0, ""))
        for name in ("run", "check", "show", "ops", "info", "bench"):
            self.assertRegex(output, rf"(?m)^  {name} ")
            status, text, _ = self.troupe(name, "--help")
            self.assertEqual(status, 0)
            self.assertIn(f"usage: troupe {name}", text)

    def test_version(self):
        self.assertEqual(self.troupe("--version"), (0, "troupe 0.1.0\n", ""))

    def test_one_rank_prints(self):
        self.assertEqual(self.troupe("--version", ranks=2), (0, "troupe 0.1.0\n", ""))

    def test_info(self):
        status, output, _ = self.troupe("info")
        self.assertEqual(status, 0)
        for fact in ("0.1.0", "MPI", "BLAS", "workers"):
            self.assertRegex(output, f"(?i){fact}")

    def test_ops(self):
        status, output, _ = self.troupe("ops")
        self.assertEqual(status, 0)
        for op in ("MatMul", "IdxDataset", "ApplyAdam", "AllReduce"):
            self.assertIn(op, output)
        status, output, _ = self.troupe("ops", "MatMul")
        self.assertEqual(status, 0)
        self.assertIn("transpose_a", output)
        status, output, messages = self.troupe("ops", "Matmul")
        self.assertEqual((status, output), (2, ""))
        self.assertIn('(did you mean "MatMul"?)', messages)

    def test_full_output(self):
        arguments = ["run", AFFINE, "--feed", "x=[[1,2]]", "--fetch", "y"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            status, _, messages = self.troupe(*arguments, stdout=full)
        self.assertEqual((status, messages),
                         (3, "troupe: standard output: No space left on device\n"))
        with open("/dev/full", "w", encoding="utf-8") as full:
            status, _, messages = self.troupe("--version", stdout=full)
        self.assertEqual((status, messages),
                         (3, "troupe: standard output: No space left on device\n"))

    def test_closed_output(self):
        # A file opened for reading refuses writing, as a closed one does.
        with open(os.devnull, encoding="utf-8") as closed:
            status, _, messages = self.troupe("ops", stdout=closed)
        self.assertEqual((status, messages), (3, "troupe: standard output: Bad file descriptor\n"))


if __name__ == "__main__":
    unittest.main()
