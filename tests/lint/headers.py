"""Every header compiles alone. Usage: headers.py COMPILER ROOT. Templates (.inc.h) are parts of a
file and no headers. --self-test shows that a header that does not compile alone is found."""
import os
import subprocess
import sys
import tempfile

FOLDERS = ["include", "base", "scheduler", "actors", "devices", "transport", "ops", "graph",
           "coordinator", "cli"]
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Wstrict-prototypes",
            "-Werror", "-D_GNU_SOURCE"]


def headers(root):
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(".h") and not name.endswith(".inc.h"):
                    yield os.path.relpath(os.path.join(where, name), root)


def package_flags():
    flags = []
    for package in ("ompi-c", "mpich", "jansson", "hwloc", "openblas", "zlib"):
        done = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True)
        if done.returncode == 0:
            flags += done.stdout.split()
    return flags


def failures(compiler, root):
    flags = package_flags()
    for header in headers(root):
        include = header[len("include/"):] if header.startswith("include/") else header
        source = f'#include "{include}"\nextern int troupe_lint_nothing;\n'
        command = [compiler, *WARNINGS, *flags, "-I.", "-Iinclude", "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, cwd=root, input=source, text=True, capture_output=True)
        if done.returncode != 0:
            yield f"{header}: does not compile alone with {compiler}\n{done.stderr}"


def self_test(compiler):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "base"))
        for name, text in (("bad.h", "size_t troupe_bad(void);\n"),
                           ("good.h", "#include <stddef.h>\nsize_t troupe_good(void);\n")):
            with open(os.path.join(root, "base", name), "w", encoding="utf-8") as file:
                file.write(text)
        found = list(failures(compiler, root))
        return len(found) == 1 and found[0].startswith("base/bad.h")


def main():
    if not self_test(sys.argv[1]):
        print("a header that does not compile alone was not found")
        return 1
    count = len(list(headers(sys.argv[2])))
    found = list(failures(sys.argv[1], sys.argv[2]))
    print(f"{count} headers, {len(found)} do not compile alone")
    print("\n".join(found))
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
