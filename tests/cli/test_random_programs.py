"""Random programs of branches, loops, calls and recursion, compared with a plain interpreter.

A program is a block of statements over int32 scalars; branches, loop bodies and called functions are
blocks too, which may read what the program around them has computed. The same blocks are interpreted
here and written as a graph. A seed makes a program; a failure names the seed and leaves the graph.
"""
import json
import os
import random
import tempfile
import unittest

import support

LIMIT = 1000  # values are kept between -LIMIT and LIMIT, so that none overflows
BINARY = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Maximum": max, "Minimum": min}


def clamp(value):
    return max(-LIMIT, min(LIMIT, value))


class Block:
    """Statements with parameters and results."""

    def __init__(self, name, params):
        self.name = name
        self.params = params
        self.statements = []
        self.results = []


class Maker:
    """Makes a random program."""

    def __init__(self, seed, ranks):
        self.random = random.Random(seed)
        self.kinds = ["if", "while", "call", "case"]
        if ranks < 2:  # a function that calls itself is on one rank, whatever devices say
            self.kinds.append("recursion")
        self.count = 0
        self.outer = []  # what the program has computed before the statement that is being made
        self.main = Block("main", ["p", "q"])
        for _ in range(self.random.randint(3, 6)):
            self.statement(self.main, 0)
            self.outer = self.known(self.main)
        self.main.results = self.outer[-4:]

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    @staticmethod
    def known(block):
        return block.params + [name for statement in block.statements for name in statement[1]]

    def pick(self, block, count=1):
        names = self.known(block) + (self.outer if block is not self.main else [])
        return [self.random.choice(names) for _ in range(count)]

    def block(self, params, results, depth):
        inner = Block(self.name("f"), [self.name("a") for _ in range(params)])
        for _ in range(self.random.randint(0, 3)):
            self.statement(inner, depth + 1)
        if not self.known(inner) and not self.outer:
            self.constant(inner)
        inner.results = self.pick(inner, results)
        return inner

    def constant(self, block):
        block.statements.append(("const", [self.name("c")], self.random.randint(-5, 5)))

    def statement(self, block, depth):
        kinds = ["const", "op", "op", "op"]
        if depth < 3:
            kinds += self.kinds
        getattr(self, "make_" + self.random.choice(kinds))(block, depth)

    def make_const(self, block, depth):
        self.constant(block)

    def make_op(self, block, depth):
        if not self.known(block) and not self.outer:
            self.constant(block)
        block.statements.append(("op", [self.name("o")], self.random.choice(sorted(BINARY)),
                                 self.pick(block, 2)))

    def make_branches(self, block, depth, kind, count):
        if not self.known(block) and not self.outer:
            self.constant(block)
        params, results = self.random.randint(0, 3), self.random.randint(1, 2)
        blocks = [self.block(params, results, depth) for _ in range(count)]
        block.statements.append((kind, [self.name("r") for _ in range(results)],
                                 self.pick(block, 2), self.pick(block, params), blocks))

    def make_if(self, block, depth):
        self.make_branches(block, depth, "if", 2)

    def make_case(self, block, depth):
        self.make_branches(block, depth, "case", self.random.randint(1, 4))

    def make_call(self, block, depth):
        self.make_branches(block, depth, "call", 1)

    def make_while(self, block, depth):
        self.make_repeat(block, depth, "while")

    def make_recursion(self, block, depth):
        self.make_repeat(block, depth, "recursion")

    def make_repeat(self, block, depth, kind):
        if not self.known(block) and not self.outer:
            self.constant(block)
        values = self.random.randint(1, 3)
        body = self.block(values, values, depth)
        block.statements.append((kind, [self.name("w") for _ in range(values)],
                                 self.random.randint(0, 4), self.pick(block, values), [body]))


class Interpreter:
    """Runs a program in the order in which it is written."""

    def __init__(self, program, arguments):
        self.outer = {}
        self.values = self.run(program, arguments, is_main=True)

    def run(self, block, arguments, is_main=False):
        local = dict(zip(block.params, arguments))
        if is_main:
            self.outer = local

        def get(name):
            return local[name] if name in local else self.outer[name]

        for statement in block.statements:
            local.update(zip(statement[1], self.step(statement, get)))
        return [get(name) for name in block.results]

    def step(self, statement, get):
        kind = statement[0]
        if kind == "const":
            return [statement[2]]
        if kind == "op":
            return [clamp(BINARY[statement[2]](*map(get, statement[3])))]
        arguments, blocks = list(map(get, statement[3])), statement[4]
        if kind in ("while", "recursion"):
            for _ in range(statement[2]):
                arguments = self.run(blocks[0], arguments)
            return arguments
        choice = 0
        if kind == "if":
            choice = 0 if get(statement[2][0]) < get(statement[2][1]) else 1
        if kind == "case":
            index = get(statement[2][0])
            choice = index if 0 <= index < len(blocks) else len(blocks) - 1
        return self.run(blocks[choice], arguments)


class Writer:
    """Writes a program as a graph whose nodes are spread over `ranks` ranks, and over `sims`
    simulated devices of each."""

    def __init__(self, program, seed, ranks, sims):
        self.random = random.Random(seed)
        self.ranks = ranks
        self.sims = sims
        self.functions = []
        self.values = {}  # name of the program's value -> what the graph calls it
        nodes = [self.node("low", "Const", dtype="int32", value=-LIMIT),
                 self.node("high", "Const", dtype="int32", value=LIMIT)]
        nodes += [self.node(name, "Placeholder", dtype="int32", shape=[]) for name in program.params]
        self.values.update((name, name) for name in program.params)
        nodes += self.block(program)
        self.graph = {"node": nodes, "library": {"function": self.functions}}
        self.random.shuffle(nodes)

    def node(self, name, op, inputs=(), **attrs):
        node = {"name": name, "op": op, "input": list(inputs), "attr": attrs}
        if self.ranks > 1 and self.random.random() < 0.3:
            node["device"] = f"/task:{self.random.randrange(self.ranks)}"
        if self.sims > 0 and self.random.random() < 0.5:
            node["device"] = (node.get("device", "") +
                              f"/device:SIM:{self.random.randrange(self.sims)}")
        return node

    def block(self, block):
        nodes = []
        for statement in block.statements:
            nodes += getattr(self, "write_" + statement[0])(statement)
        return nodes

    def function(self, block, params=None, more=(), results=()):
        """Writes a block as a function; `more` are nodes and `results` outputs of the loop."""
        params = block.params if params is None else params
        self.values.update((name, name) for name in params)
        nodes = self.block(block) + list(more)
        outputs = list(results) + [self.values[name] for name in block.results]
        self.add(block.name, params, [(value, "int32") for value in outputs], nodes)
        return block.name

    def add(self, name, params, outputs, nodes):
        self.random.shuffle(nodes)
        self.functions.append({
            "name": name,
            "input": [{"name": param, "dtype": "int32", "shape": []} for param in params],
            "output": [{"name": f"out{i}", "value": value, "dtype": dtype, "shape": []}
                       for i, (value, dtype) in enumerate(outputs)],
            "node": nodes})

    def ports(self, names, node, first=0):
        for port, name in enumerate(names, first):
            self.values[name] = f"{node}:{port}"

    def get(self, names):
        return [self.values[name] for name in names]

    def write_const(self, statement):
        name = statement[1][0]
        self.values[name] = name
        return [self.node(name, "Const", dtype="int32", value=statement[2])]

    def write_op(self, statement):
        name = statement[1][0]
        self.values[name] = name
        return [self.node(name + "_raw", statement[2], self.get(statement[3])),
                self.node(name + "_low", "Maximum", [name + "_raw", "low"]),
                self.node(name, "Minimum", [name + "_low", "high"])]

    def write_if(self, statement):
        _, names, pair, arguments, blocks = statement
        node, inputs, less = f"if_{names[0]}", self.get(arguments), self.get(pair)
        functions = [self.function(block) for block in blocks]
        self.ports(names, node)
        return [self.node(node + "_less", "Less", less),
                self.node(node, "If", [node + "_less"] + inputs, then_branch=functions[0],
                          else_branch=functions[1])]

    def write_case(self, statement):
        _, names, pair, arguments, blocks = statement
        node, inputs = f"case_{names[0]}", self.get(pair[:1]) + self.get(arguments)
        functions = [self.function(block) for block in blocks]
        self.ports(names, node)
        return [self.node(node, "Case", inputs, branches=functions)]

    def write_call(self, statement):
        _, names, _, arguments, blocks = statement
        node, inputs = f"call_{names[0]}", self.get(arguments)
        function = self.function(blocks[0])
        self.ports(names, node)
        return [self.node(node, "Call", inputs, f=function)]

    def write_while(self, statement):
        _, names, limit, arguments, blocks = statement
        node, body, inputs = f"while_{names[0]}", blocks[0], self.get(arguments)
        count = f"{node}_i"
        cond = f"{node}_cond"
        params = [count] + body.params
        self.add(cond, params, [("less", "bool")],
                 [self.node("limit", "Const", dtype="int32", value=limit),
                  self.node("less", "Less", [count, "limit"])])
        self.function(body, params, [self.node(count + "_one", "Const", dtype="int32", value=1),
                                     self.node(count + "_next", "Add", [count, count + "_one"])],
                      [count + "_next"])
        self.ports(names, node, 1)
        return [self.node(node + "_zero", "Const", dtype="int32", value=0),
                self.node(node, "While", [node + "_zero"] + inputs, cond=cond, body=body.name,
                          parallel_iterations=self.random.choice([1, 2, 10]))]


    def write_recursion(self, statement):
        """again(n, values) = again(n - 1, body(values)) if n > 0, else values."""
        _, names, count, arguments, blocks = statement
        node, body, inputs = f"again_{names[0]}", blocks[0], self.get(arguments)
        self.function(body)
        again, deeper, done = node + "_f", node + "_deeper", node + "_done"
        left = f"{node}_left"
        values = [f"{node}_v{i}" for i in range(len(names))]
        ports = [f"{node}_next:{i}" for i in range(len(names))]
        self.add(again, [left] + values, [(f"if:{i}", "int32") for i in range(len(names))],
                 [self.node("none", "Const", dtype="int32", value=0),
                  self.node("more", "Less", ["none", left]),
                  self.node("if", "If", ["more", left] + values, then_branch=deeper,
                            else_branch=done)])
        self.add(done, [left] + values, [(value, "int32") for value in values], [])
        self.add(deeper, [left] + values, [(f"rest:{i}", "int32") for i in range(len(names))],
                 [self.node(f"{node}_next", "Call", values, f=body.name),
                  self.node("one", "Const", dtype="int32", value=1),
                  self.node("fewer", "Sub", [left, "one"]),
                  self.node("rest", "Call", ["fewer"] + ports, f=again)])
        self.ports(names, node)
        return [self.node(node + "_count", "Const", dtype="int32", value=count),
                self.node(node, "Call", [node + "_count"] + inputs, f=again)]


class RandomPrograms(support.Case):
    def check(self, seed, ranks, sims=0):
        program = Maker(seed, ranks).main
        writer = Writer(program, seed + ranks, max(ranks, 1), sims)
        arguments = [random.Random(seed).randint(-9, 9) for _ in program.params]
        wanted = Interpreter(program, arguments).values
        with tempfile.NamedTemporaryFile("w", suffix=f"_{seed}.json", delete=False) as file:
            file.write(json.dumps(writer.graph, indent=1))
        names = [writer.values[name] for name in program.results]
        options = ["--sim", f"{sims},delays={seed + 1}"] if sims > 0 else []
        for name, value in zip(program.params, arguments):
            options += ["--feed", f"{name}={value}"]
        for name in names:
            options += ["--fetch", name]
        got = self.result("run", file.name, *options, ranks=ranks)
        self.assertEqual([got[name] for name in names], wanted, f"seed {seed}: {file.name}")
        os.unlink(file.name)

    def test_one_process(self):
        for seed in range(60):
            self.check(seed, 0)

    def test_ranks(self):
        for seed in range(100, 112):
            for ranks in (2, 3):
                self.check(seed, ranks)

    def test_simulated_devices(self):
        for seed in range(200, 215):
            for ranks in (0, 2):
                self.check(seed, ranks, sims=2)


if __name__ == "__main__":
    unittest.main()
