"""The gates that hold the source tree to the house rules.

Usage: gates.py GATE ROOT [BUILD]. Prints each violation as PATH:LINE: TEXT and exits with 1 when
there is one. A gate is a function of a Tree; self_test.py shows of each that it fires.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

# What each folder may include besides itself and include/troupe.
LAYERS = {
    "include": set(),
    "base": set(),
    "scheduler": {"base"},
    "actors": {"base", "scheduler"},
    "devices": {"base"},
    "ops": {"base", "devices"},
    "graph": {"base", "devices", "ops"},
    "transport": {"base"},
    "coordinator": {"base", "scheduler", "actors", "devices", "ops", "graph", "transport"},
    "cli": set(),
}
SOURCE_FOLDERS = list(LAYERS) + ["examples", "bench", "tests"]
# Paths in the tree may name these places of a system, and no others.
SYSTEM_PLACES = {"usr", "tmp", "dev", "proc", "sys", "etc", "bin", "var", "lib", "opt", "run"}
TEXT_ENDINGS = (".c", ".h", ".py", ".sh", ".md", ".json", ".build", ".txt", ".1", ".yml", ".supp")

FILE_LINES = 1200
FUNCTION_LINES = 60
NESTING = 4


class Tree:
    """The files of a source tree by their path from its root."""

    def __init__(self, root, build=None):
        self.root = root
        self.build = build

    def paths(self, folders, endings):
        for folder in folders:
            for where, inside, names in os.walk(os.path.join(self.root, folder)):
                inside[:] = sorted(d for d in inside if not d.startswith((".", "__")))
                for name in sorted(names):
                    if name.endswith(endings):
                        yield os.path.relpath(os.path.join(where, name), self.root)

    def sources(self):
        return self.paths(SOURCE_FOLDERS, (".c", ".h"))

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    """The text with comments and the insides of strings as spaces: lines and columns stay."""
    token = re.compile(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

    def replace(match):
        if match.group(0)[0] == "/":
            return blank(match)
        return match.group(0)[0] + " " * (len(match.group(0)) - 2) + match.group(0)[0]

    return token.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def matches(tree, pattern, message, exempt=None):
    """Every place in the code (not in comments or strings) that the pattern matches."""
    for path in tree.sources():
        code = code_of(tree.text(path))
        for match in re.finditer(pattern, code):
            if exempt is None or not exempt(code, match):
                yield f"{path}:{line_of(code, match.start())}: {message}"


def gate_includes(tree):
    """Includes follow the arrows between the folders."""
    for path in tree.sources():
        folder = path.split(os.sep)[0]
        if folder in ("tests", "bench"):
            continue
        allowed = LAYERS.get(folder, set()) | ({folder} if folder in LAYERS else set())
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)
            if not match:
                continue
            quote, name = match.groups()
            target = name.split("/")[0] if "/" in name else ""
            if quote == "<" and target not in SOURCE_FOLDERS:
                continue
            if target == "troupe" and os.path.exists(os.path.join(tree.root, "include", name)):
                continue
            if target not in allowed:
                yield (f'{path}:{number}: {folder}/ must not include "{name}"; it may include '
                       f'troupe/*.h and {", ".join(sorted(allowed)) or "nothing else"}')


def gate_mpi(tree):
    """MPI is spoken in transport/ and started in coordinator/, nowhere else in the library."""
    for path in tree.sources():
        if path.split(os.sep)[0] in ("transport", "coordinator", "tests", "bench", "examples"):
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if re.match(r"\s*#\s*include\s+[<\"]mpi\.h", line):
                yield f"{path}:{number}: mpi.h belongs in transport/ and coordinator/"


def gate_file_length(tree):
    for path in tree.sources():
        lines = tree.text(path).count("\n")
        if lines > FILE_LINES:
            yield f"{path}:{lines}: {lines} lines; a file has at most {FILE_LINES}"


def functions(code):
    """(first line, lines) of each function body: what lies between braces in column 0."""
    start = None
    lines = code.splitlines()
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            yield start, lines[start - 1:number]
            start = None


def gate_functions(tree):
    """Function length and nesting."""
    for path in tree.sources():
        for start, lines in functions(code_of(tree.text(path))):
            if len(lines) - 2 > FUNCTION_LINES:
                yield (f"{path}:{start}: a function of {len(lines) - 2} lines; "
                       f"at most {FUNCTION_LINES}")
            depth = deepest = 0
            for line in lines:
                for character in line:
                    depth += (character == "{") - (character == "}")
                    deepest = max(deepest, depth)
            if deepest - 1 > NESTING + 1:  # an initialiser's braces count too
                yield f"{path}:{start}: blocks nested {deepest - 1} deep; at most {NESTING}"


def macros(code):
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?((?:\\\n|[^\n])*)", code,
                             re.MULTILINE):
        yield line_of(code, match.start()), match.group(1), match.group(3)


def gate_macros(tree):
    """No macro returns, jumps or declares."""
    declares = re.compile(
        r"(?:^|[;{])\s*(?:static\s+|const\s+)*(?:int|char|float|double|bool|size_t|u?int\d+_t|"
        r"(?:struct|enum|union)\s+\w+)\s+\**\w+\s*(?:=|;|\[)")
    for path in tree.sources():
        if path.split(os.sep)[0] == "tests":
            continue
        for number, name, body in macros(code_of(tree.text(path))):
            jump = re.search(r"\b(return|goto|break|continue|longjmp)\b", body)
            if jump:
                yield f"{path}:{number}: macro {name} has `{jump.group(1)}`"
            elif declares.search(body.replace("\\\n", " ")):
                yield f"{path}:{number}: macro {name} declares a variable"


def gate_function_casts(tree):
    """No cast of a function pointer."""
    pattern = (r"\(\s*[\w\s*]+\(\s*\*\s*\)\s*\([^()]*\)\s*\)\s*[&\w]"
               r"|\(\s*(?:const\s+)?\w+_fn\s*\*\s*\)\s*[&\w]")

    def in_sizeof(code, match):
        return re.search(r"(sizeof|_Alignof|_Generic)\s*$", code[:match.start()]) is not None

    return matches(tree, pattern, "a function pointer is cast", in_sizeof)


def gate_volatile(tree):
    """No volatile for sharing; and no fence, which ThreadSanitizer does not model."""

    def is_barrier(code, match):
        before = code[max(0, match.start() - 16):match.start()]
        return match.group(0) == "volatile" and re.search(r"\b(__asm__|asm)\s*$", before)

    return matches(tree, r"\bvolatile\b|\batomic_thread_fence\b",
                   "no volatile and no fence: use <stdatomic.h> on the shared object", is_barrier)


def gate_orders(tree):
    """An atomic access that is not seq_cst has a comment in its function, or just above it, or in
    the lines above a file's table."""
    order = re.compile(r"memory_order_(relaxed|acquire|release|acq_rel|consume)")
    for path in tree.sources():
        if path.split(os.sep)[0] in ("tests", "bench"):
            continue
        text = tree.text(path)
        lines, code = text.splitlines(), code_of(text).splitlines()
        for number, line in enumerate(code):
            if not order.search(line):
                continue
            first = number
            while first > 0 and not code[first - 1].startswith("}") and number - first < 60:
                first -= 1
            if not any("/*" in lines[i] or "*/" in lines[i] for i in range(first, number + 1)):
                yield f"{path}:{number + 1}: this order wants a comment that names its partner"


def gate_typedefs(tree):
    return matches(tree, r"\btypedef\s+(struct|union|enum)\s*\w*\s*(\{|\**\s*\w+\s*;)",
                   "no typedef of a structure, union or enumeration")


def gate_openings(tree):
    """A .c file opens with what it is; a header has the guard of its path."""
    for path in tree.sources():
        text = tree.text(path)
        if not text.startswith("/*"):
            yield f"{path}:1: a file opens with a comment that says what it is"
        if not path.endswith(".h") or path.endswith(".inc.h") or path.startswith("tests"):
            continue
        parts = path[:-2].split(os.sep)
        if parts[0] == "include":
            parts = parts[1:]
        guard = "_".join(["TROUPE"] + [p for p in parts]).upper() + "_H"
        if parts[0] == "troupe":
            guard = "_".join(parts).upper() + "_H"
        guard = re.sub(r"[^A-Z0-9_]", "_", guard)
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield f"{path}:1: the guard of this header is {guard}"


def gate_comments(tree):
    """Each paragraph of public declarations starts with a comment."""
    for path in tree.paths(["include/troupe"], (".h",)):
        number = 1
        for paragraph in tree.text(path).split("\n\n"):
            if "TROUPE_API" in code_of(paragraph) and "#define TROUPE_API" not in paragraph:
                before = code_of(paragraph).index("TROUPE_API")
                if "/*" not in paragraph[:before]:
                    yield f"{path}:{number}: a public declaration has no comment"
            number += paragraph.count("\n") + 2


def gate_places(tree):
    """No path of somebody's own machine, and nothing left unfinished."""
    place = re.compile(r"(?<![\w.$}*/:<\"'=@-])[\"'`(=@]?(/[a-z]+)/[\w.]")
    for path in tree.paths(["."], TEXT_ENDINGS):
        if path.startswith(("build", "tests/lint/")):
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            for match in place.finditer(line):
                if match.group(1)[1:] not in SYSTEM_PLACES and match.group(1) != "/job":
                    if os.path.exists(match.group(1)):
                        yield f"{path}:{number}: {match.group(1)}/ is a place of one machine"
            unfinished = re.search(r"\b(TODO|FIXME|XXX)\b", line)
            if unfinished:
                yield f"{path}:{number}: {unfinished.group(1)}: finish it or file it"


def symbols(path, dynamic):
    command = ["nm", "--defined-only", "-g"] + (["-D"] if dynamic else []) + [path]
    for line in subprocess.run(command, check=True, capture_output=True,
                               text=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3:
            yield words[2]


def gate_symbols(tree):
    """What the libraries define for the linker has the prefix; sanitizers' own names pass."""
    found = 0
    for where, _, names in os.walk(tree.build):
        for name in sorted(names):
            shared = re.fullmatch(r"libtroupe\.so(\.[\d.]+)?", name) is not None
            if not shared and not re.fullmatch(r"libtroupe\w*\.a", name):
                continue
            found += 1
            for symbol in symbols(os.path.join(where, name), shared):
                if not symbol.startswith(("troupe_", "__asan", "__odr_asan", "__ubsan", "__tsan",
                                          "_init", "_fini", "__bss", "_edata", "_end")):
                    yield f"{name}: symbol {symbol} has no troupe_ prefix"
    if found == 0:
        yield f"{tree.build}: no library of Troupe is there to look at"


def tidy(tree, paths):
    """Runs clang-tidy over some sources; gives its findings in the tree."""
    done = subprocess.run(["clang-tidy", "-p", tree.build, "--quiet"] + paths, cwd=tree.root,
                          capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        match = re.match(r"(.+?):(\d+):\d+: error: (.*)", line)
        if match:
            path = os.path.relpath(os.path.join(tree.build, match.group(1)), tree.root)
            yield f"{path}:{match.group(2)}: {match.group(3)}"
    if done.returncode not in (0, 1):
        yield f"clang-tidy ended with {done.returncode}: {done.stderr.strip()}"


def gate_tidy(tree):
    """clang-tidy finds nothing: names, sizes of functions, likely mistakes (.clang-tidy)."""
    paths = [path for path in tree.sources()
             if path.endswith(".c") and path.split("/")[0] in LAYERS]
    shares = [paths[i::4] for i in range(4) if paths[i::4]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda share: list(tidy(tree, share)), shares):
            yield from found


def gate_format(tree):
    """clang-format has nothing to change, but for tables of rows, which have columns."""
    paths = [path for path in tree.sources() if not path.endswith("_rows.inc.h")]
    command = ["clang-format", "--dry-run", "-Werror", "--style=file"] + paths
    done = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    seen = set()
    for line in done.stderr.splitlines():
        match = re.match(r"(\S+?):(\d+):\d+: error", line)
        if match and match.group(1) not in seen:
            seen.add(match.group(1))
            yield f"{match.group(1)}:{match.group(2)}: clang-format would change this file"
    if done.returncode != 0 and "error" not in done.stderr:
        yield f"clang-format: {done.stderr.strip()}"


GATES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("gate_")}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in GATES:
        print(f"usage: gates.py {'|'.join(GATES)} ROOT [BUILD]", file=sys.stderr)
        return 2
    tree = Tree(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    found = sorted(set(GATES[sys.argv[1]](tree)))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
