#!/usr/bin/env python3
"""Large graphs of small ops, as JSON on standard output, and what their node "out" is in the end.

Usage: graphs.py KIND NODES, where KIND is one of
  chain      each node takes the one before it
  layered    layers of 100 nodes, each of which adds 3 random ones of the layer before
  fan        one value to all nodes, all of which a last one waits for
  variables  counters: a variable, its initial value, an update and a read each
Every value is a small whole number, so that results are exact.
"""
import json
import random
import sys

WIDTH = 100
MODULUS = 8191


def const(name, value):
    return {"name": name, "op": "Const", "attr": {"dtype": "int32", "value": value}}


def chain(nodes):
    made = [const("start", 7), const("one", 1)]
    last = "start"
    for i in range(nodes - 3):
        op = "AddV2" if i % 2 == 0 else "Identity"
        made.append({"name": f"n{i}", "op": op, "input": [last] + ["one"] * (op == "AddV2")})
        last = f"n{i}"
    return made + [{"name": "out", "op": "Identity", "input": [last]}], 7 + (nodes - 3 + 1) // 2


def layered(nodes):
    """Each layer is taken modulo a prime by its next one, or the sums would not fit."""
    draw = random.Random(1)
    made = [const("modulus", MODULUS)] + [const(f"n{i}", i) for i in range(WIDTH)]
    values = list(range(WIDTH))
    count = WIDTH
    while len(made) + 2 * WIDTH + 1 <= nodes:
        before = values[-WIDTH:]
        first = count - WIDTH
        for _ in range(WIDTH):
            picks = [draw.randrange(WIDTH) for _ in range(3)]
            made.append({"name": f"s{count}", "op": "AddN",
                         "input": [f"n{first + pick}" for pick in picks]})
            made.append({"name": f"n{count}", "op": "FloorMod", "input": [f"s{count}", "modulus"]})
            values.append(sum(before[pick] for pick in picks) % MODULUS)
            count += 1
    last = [f"n{i}" for i in range(count - WIDTH, count)]
    return made + [{"name": "out", "op": "AddN", "input": last}], sum(values[-WIDTH:])


def fan(nodes):
    made = [const("start", 7)]
    made += [{"name": f"n{i}", "op": "Identity", "input": ["start"]} for i in range(nodes - 2)]
    waits = [f"^n{i}" for i in range(nodes - 2)]
    return made + [{"name": "out", "op": "Identity", "input": ["start"] + waits}], 7


def variables(nodes):
    """The reads are of the step before, which set each variable to its initial value."""
    made, reads = [], []
    for i in range((nodes - 1) // 4):
        made.append(const(f"value{i}", i % 10))
        made.append({"name": f"v{i}", "op": "VariableV2",
                     "attr": {"dtype": "int32", "shape": [], "initializer": f"value{i}"}})
        made.append({"name": f"update{i}", "op": "AssignAdd", "input": [f"v{i}", f"value{i}"]})
        made.append({"name": f"read{i}", "op": "Identity", "input": [f"v{i}"]})
        reads.append(f"read{i}")
    waits = [f"^update{i}" for i in range(len(reads))]
    total = sum(i % 10 for i in range(len(reads)))
    return made + [{"name": "out", "op": "AddN", "input": reads + waits}], total


KINDS = {"chain": chain, "layered": layered, "fan": fan, "variables": variables}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    made, _ = KINDS[sys.argv[1]](int(sys.argv[2]))
    json.dump({"node": made}, sys.stdout)


if __name__ == "__main__":
    main()
