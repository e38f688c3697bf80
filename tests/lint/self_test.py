"""Shows of each gate that it fires on a bad sample and passes a good one."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gates  # noqa: E402

# (gate, path, bad text, good text)
SAMPLES = [
    ("includes", "base/a.c", '#include "graph/graph.h"\n', '#include "base/a.h"\n'),
    ("includes", "scheduler/a.c", '#include "actors/actors.h"\n', '#include "base/a.h"\n'),
    ("includes", "transport/a.c", '#include "ops/op.h"\n', '#include "base/a.h"\n'),
    ("includes", "ops/a.c", '#include "transport/a.h"\n', '#include "devices/device.h"\n'),
    ("includes", "cli/a.c", '#include "base/a.h"\n', '#include "cli/cli.h"\n'),
    ("includes", "examples/a.c", '#include "scheduler/a.h"\n', "#include <stdio.h>\n"),
    ("includes", "include/troupe/a.h", '#include "base/a.h"\n', "#include <stdint.h>\n"),
    ("includes", "base/b.c", '#include "a.h"\n', '#include "base/a.h"\n'),
    ("mpi", "actors/a.c", "#include <mpi.h>\n", '/* #include <mpi.h> is for others */\n'),
    ("file_length", "base/a.c", "int a;\n" * 1201, "int a;\n" * 1200),
    ("functions", "base/a.c", "int f(void)\n{\n" + "    a();\n" * 61 + "}\n",
     "int f(void)\n{\n" + "    a();\n" * 60 + "}\n"),
    ("functions", "base/b.c", "int f(void)\n{\n" + "{" * 6 + "}" * 6 + "\n}\n",
     "int f(void)\n{\n" + "{" * 4 + "}" * 4 + "\n}\n"),
    ("macros", "base/a.h", "#define TRY(x) \\\n    if (x) \\\n        return x\n",
     "#define BIG 10 /* what we return */\n"),
    ("macros", "base/b.h", "#define LEAVE goto out\n", "#define ROWS(X) X(a) X(b)\n"),
    ("macros", "base/c.h", "#define VARIABLE(n) int n = 0;\n", "#define SUM(a, b) ((a) + (b))\n"),
    ("function_casts", "base/a.c", "f = (void (*)(void *))g;\n", "void (*f)(void *) = g;\n"),
    ("function_casts", "base/b.c", "f = (troupe_step_fn *)g;\n", "a = (struct b *)g;\n"),
    ("volatile", "base/a.c", "static volatile int flag;\n", "/* volatile is for devices */\n"),
    ("volatile", "base/b.c", "atomic_thread_fence(memory_order_acquire);\n",
     '__asm__ volatile("pause");\n'),
    ("orders", "base/a.c", "void f(void)\n{\n    atomic_load_explicit(&a, memory_order_acquire);\n}\n",
     "/* Pairs with the release in g. */\nvoid f(void)\n{\n"
     "    atomic_load_explicit(&a, memory_order_acquire);\n}\n"),
    ("typedefs", "base/a.h", "typedef struct a a;\n", "typedef struct a *f(void);\n"),
    ("openings", "base/a.c", "#include <stdio.h>\n", "/* Prints. */\n#include <stdio.h>\n"),
    ("openings", "base/arena.h", "/* An arena. */\n#ifndef ARENA_H\n#define ARENA_H\n#endif\n",
     "/* An arena. */\n#ifndef TROUPE_BASE_ARENA_H\n#define TROUPE_BASE_ARENA_H\n#endif\n"),
    ("openings", "include/troupe/a.h", "/* A. */\n#ifndef A_H\n#define A_H\n#endif\n",
     "/* A. */\n#ifndef TROUPE_A_H\n#define TROUPE_A_H\n#endif\n"),
    ("comments", "include/troupe/a.h", "/* A. */\n\nTROUPE_API int troupe_a(void);\n",
     "/* A. */\n\n/* The number of a. */\nTROUPE_API int troupe_a(void);\n"),
    ("places", "base/a.md", "see /root/notes\n", "see /usr/include/stdio.h\n"),
    ("places", "base/b.c", "/* TO" + "DO: think */\n", "/* Thought through. */\n"),
    ("format", "base/a.c", "int  main( void ){return 0;}\n",
     "int main(void)\n{\n    return 0;\n}\n"),
]
STYLE = "BasedOnStyle: LLVM\nIndentWidth: 4\nBreakBeforeBraces: Linux\n" \
        "AllowShortFunctionsOnASingleLine: None\n"


class SelfTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def violations(self, gate, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(os.path.join(self.root, ".clang-format"), "w", encoding="utf-8") as file:
            file.write(STYLE)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        found = list(gates.GATES[gate](gates.Tree(self.root)))
        os.remove(full)
        return found

    def test_samples(self):
        for gate, path, bad, good in SAMPLES:
            with self.subTest(gate=gate, path=path):
                found = self.violations(gate, path, bad)
                self.assertTrue(found, "the gate did not fire")
                self.assertTrue(all(path in one for one in found), found)
                self.assertEqual(self.violations(gate, path, good), [])

    def compiled_library(self, source):
        with open(os.path.join(self.root, "a.c"), "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "libtroupe.so.0", "a.c"], cwd=self.root,
                       check=True)
        return list(gates.GATES["symbols"](gates.Tree(self.root, self.root)))

    def test_symbols(self):
        self.assertTrue(list(gates.GATES["symbols"](gates.Tree(self.root, self.root))))
        self.assertEqual(self.compiled_library("int troupe_a(void) { return 1; }\n"), [])
        self.assertEqual(self.compiled_library("int helper(void) { return 1; }\n"),
                         ["libtroupe.so.0: symbol helper has no troupe_ prefix"])

    def tidied(self, source):
        os.makedirs(os.path.join(self.root, "base"), exist_ok=True)
        path = os.path.join(self.root, "base", "a.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        shutil.copy(os.path.join(HERE, "..", "..", ".clang-tidy"), self.root)
        with open(os.path.join(self.root, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([{"directory": self.root, "file": path, "command": f"cc -c {path}"}], file)
        return list(gates.GATES["tidy"](gates.Tree(self.root, self.root)))

    @unittest.skipUnless(shutil.which("clang-tidy"), "clang-tidy is not there")
    def test_tidy(self):
        self.assertEqual(self.tidied("int troupe_a(void);\nint troupe_a(void)\n{\n    return 1;\n}\n"),
                         [])
        found = self.tidied("int troupe_Bad(int a, int b, int c, int d, int e, int f, int g);\n"
                            "int troupe_Bad(int a, int b, int c, int d, int e, int f, int g)\n"
                            "{\n    return a + b + c + d + e + f + g;\n}\n")
        self.assertTrue(any("function-size" in one for one in found), found)
        self.assertTrue(any("identifier-naming" in one for one in found), found)

    def test_every_gate_has_a_sample(self):
        self.assertEqual({sample[0] for sample in SAMPLES} | {"symbols", "tidy"},
                         set(gates.GATES))


if __name__ == "__main__":
    unittest.main()
