"""What the tests of the command share: the command itself, ranks, deadlines.

TROUPE is the executable; every call has a deadline, so that a hang is a failure and not a wait.
"""
import json
import os
import re
import subprocess
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TROUPE = os.environ.get("TROUPE", os.path.join(ROOT, "build", "cli", "troupe"))
GRAPHS = "tests/cli/graphs"
DATA = "/usr/share/datasets/fashion-mnist"

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")


# A small quarantine, so that AddressSanitizer's own memory does not look like growth.
def sanitizer(*options):
    given = os.environ.get("ASAN_OPTIONS")
    return ":".join(([given] if given else []) + ["quarantine_size_mb=1", *options])


# Open MPI unloads modules that have leaked, so that no suppression could name them; the leaks of the
# command itself show without mpirun.
ALONE_ENVIRONMENT = dict(ENVIRONMENT, ASAN_OPTIONS=sanitizer())
RANKS_ENVIRONMENT = dict(ENVIRONMENT, ASAN_OPTIONS=sanitizer("detect_leaks=0"))


def environment(ranks):
    return ALONE_ENVIRONMENT if ranks == 0 else RANKS_ENVIRONMENT


def command(arguments, ranks):
    launcher = [] if ranks == 0 else ["mpirun", "-n", str(ranks)]
    return launcher + [TROUPE, *arguments]


def start(*arguments, ranks=0, **options):
    """Starts the command in the root of the tree; ranks = 0 is without mpirun."""
    return subprocess.Popen(command(arguments, ranks), cwd=ROOT, env=environment(ranks), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


# A session of its own for each job: when a rank ends with a failure, mpirun signals process groups.
class Case(unittest.TestCase):
    def troupe(self, *arguments, ranks=0, seconds=60, stdout=subprocess.PIPE):
        """Runs the command to its end: (exit status, standard output, its own messages)."""
        try:
            done = subprocess.run(command(arguments, ranks), cwd=ROOT, env=environment(ranks),
                                  text=True, stdout=stdout, stderr=subprocess.PIPE, timeout=seconds,
                                  start_new_session=True)
        except subprocess.TimeoutExpired as expired:
            self.fail(f"{arguments} with {ranks} ranks took over {seconds} s; "
                      f"standard error: {expired.stderr}")
        messages = "".join(line for line in done.stderr.splitlines(keepends=True)
                           if line.startswith("troupe: "))
        return done.returncode, done.stdout, messages

    def result(self, *arguments, ranks=0, seconds=60):
        """Runs the command, which must succeed: its JSON object."""
        status, output, messages = self.troupe(*arguments, ranks=ranks, seconds=seconds)
        self.assertEqual(status, 0, messages)
        lines = output.splitlines()
        self.assertEqual(len(lines), 1, output)
        return json.loads(lines[0])

    def assert_fails(self, arguments, status, message, ranks=0):
        """The command fails with exactly this message, once, and no output."""
        got = self.troupe(*arguments, ranks=ranks)
        self.assertEqual(got, (status, "", message))

    def assert_near(self, a, b, relative):
        self.assertLessEqual(abs(a - b), relative * max(abs(a), abs(b)), f"{a} and {b}")


def children(pid):
    """The processes whose parent is `pid`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(name))
    return sorted(found)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_for(condition, seconds):
    """True when the condition comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def wait_for_line(stream, pattern, seconds):
    """Reads lines until one matches; the deadline is the watch of the caller's process."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line = stream.readline()
        if line == "":
            return None
        if re.search(pattern, line):
            return line
    return None
