#!/usr/bin/env python3
"""Checks a model with Spin: exhaustively as it stands, and that it fails without each step.

Usage: check.py MODEL.pml; CC names the compiler. A model's steps that may be left out or changed
are those that it makes conditional on a name that begins with MUTATE_.
"""
import os
import re
import subprocess
import sys
import tempfile

SECONDS = 120  # for one search, on a busy machine
DEPTH = 100000


def search(model, mutation, folder):
    """The number of errors that Spin finds; every state was seen when that is 0."""
    define = [f"-D{mutation}"] if mutation else []
    subprocess.run(["spin", "-a", *define, model], cwd=folder, check=True, timeout=SECONDS)
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"], cwd=folder, check=True,
                   timeout=SECONDS)
    done = subprocess.run(["./pan", "-n", f"-m{DEPTH}"], cwd=folder, text=True, capture_output=True,
                          check=False, timeout=SECONDS)
    report = done.stdout + done.stderr
    errors = re.search(r"errors: (\d+)", report)
    states = re.search(r"(\S+) states, stored", report)
    # A search that was cut short has seen less than all states.
    if errors is None or states is None or re.search(r"max search depth too small|out of memory|truncated", report):
        sys.exit(f"{model} {mutation}: no full search:\n{report}")
    print(f"{os.path.basename(model)} {mutation or 'as it is'}: {errors[1]} errors, "
          f"{states[1]} states")
    return int(errors[1]), report


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model = os.path.abspath(sys.argv[1])
    with open(model, encoding="utf-8") as file:
        mutations = sorted(set(re.findall(r"MUTATE_\w+", file.read())))
    if not mutations:
        sys.exit(f"{model}: there is nothing in it that could be left out")
    wrong = []
    for mutation in [None, *mutations]:
        with tempfile.TemporaryDirectory() as folder:
            errors, report = search(model, mutation, folder)
        if (errors > 0) != (mutation is not None):
            wrong.append(f"{model} {mutation or 'as it is'}: {errors} errors\n{report}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
