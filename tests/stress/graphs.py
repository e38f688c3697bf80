"""Random graphs whose results are exact: of int32, kept small by taking remainders.

A graph file holds many parts that know nothing of each other. A part has values of shape [] and [3],
constants, variables with their reads and updates, branches, calls and loops of functions (nested), Switch and
Merge, control inputs, and nodes placed on ranks at random.
"""
import random

MODULUS = 1009
VECTOR = 3
PARTS = 25  # of a file


class Builder:
    """Adds nodes to the graph or to a function's body. Values are kept as (text, is_vector)."""

    def __init__(self, draw, prefix, functions, depth, ranks=0):
        self.draw, self.prefix, self.functions = draw, prefix, functions
        self.depth, self.ranks = depth, ranks
        self.nodes, self.values = [], []

    # Names are unique in the whole file, so that a body hides nothing of the graph.
    def add(self, op, inputs=(), attr=None):
        node = {"name": f"{self.prefix}n{len(self.nodes)}", "op": op}
        inputs = list(inputs)
        if self.nodes and self.draw.random() < 0.08 and op not in ("Const", "VariableV2"):
            inputs.append("^" + self.draw.choice(self.controls))
        if inputs:
            node["input"] = inputs
        if attr:
            node["attr"] = attr
        # An update is where its variable is.
        if self.ranks > 1 and not op.startswith("Assign") and self.draw.random() < 0.7:
            node["device"] = f"/job:worker/task:{self.draw.randrange(self.ranks)}"
        self.nodes.append(node)
        return node["name"]

    @property
    def controls(self):
        """Nodes that are live whatever a branch decides."""
        return [text.partition(":")[0] for text, _ in self.values
                if text.startswith(self.prefix)] or [self.nodes[0]["name"]]

    def const(self, is_vector):
        value = [self.draw.randrange(-9, 10) for _ in range(VECTOR)]
        name = self.add("Const", attr={"dtype": "int32", "value": value if is_vector else value[0]})
        return name, is_vector

    def pick(self, is_vector=None):
        """A value, the newer ones more often."""
        known = [value for value in self.values if is_vector in (None, value[1])]
        if not known or self.draw.random() < 0.05:
            value = self.const(bool(is_vector) if is_vector is not None
                               else self.draw.random() < 0.5)
            self.values.append(value)
            return value
        return known[-1 - int(len(known) * self.draw.random() ** 2)]

    def keep(self, name, is_vector):
        self.values.append((name, is_vector))

    def small(self, name, is_vector):
        """Keeps a value below the modulus."""
        modulus = self.add("Const", attr={"dtype": "int32", "value": MODULUS})
        self.keep(self.add("FloorMod", [name, modulus]), is_vector)

    # ---- Steps of building: each adds one value or more ----

    def binary(self):
        (x, a), (y, b) = self.pick(), self.pick()
        op = self.draw.choice(["AddV2", "Sub", "Mul", "Maximum", "Minimum"])
        self.small(self.add(op, [x, y]), a or b)

    def unary(self):
        x, a = self.pick()
        op = self.draw.choice(["Identity", "Neg", "Abs", "Square"])
        self.small(self.add(op, [x]), a)

    def many(self):
        a = self.draw.random() < 0.5
        self.small(self.add("AddN", [self.pick(a)[0] for _ in range(self.draw.randint(1, 6))]), a)

    def total(self):
        axes = self.add("Const", attr={"dtype": "int32", "value": [0]})
        self.small(self.add("Sum", [self.pick(True)[0], axes]), False)

    def quarter(self):
        """Through float32, exactly."""
        x, a = self.pick()
        share = self.add("Const", attr={"dtype": "float32", "value": 0.25})
        floats = self.add("Cast", [x], {"DstT": "float32"})
        floor = self.add("Floor", [self.add("Mul", [floats, share])])
        self.keep(self.add("Cast", [floor], {"DstT": "int32"}), a)

    def select(self):
        a = self.draw.random() < 0.5
        (x, _), (y, _) = self.pick(a), self.pick(a)
        self.keep(self.add("SelectV2", [self.add("Less", [x, y]), y, self.pick(a)[0]]), a)

    def predicate(self):
        return self.add("Less", [self.pick(False)[0], self.pick(False)[0]])

    def switch(self):
        """Each side has a chain of ops that is dead when the other is taken."""
        x, a = self.pick()
        switch = self.add("Switch", [x, self.predicate()])
        ends = []
        for port in (0, 1):
            end = f"{switch}:{port}"
            for _ in range(self.draw.randint(0, 3)):
                op = self.draw.choice(["Neg", "Abs", "Identity", "AddV2"])
                end = self.add(op, [end] + ([self.pick(a)[0]] if op == "AddV2" else []))
            ends.append(end)
        self.draw.shuffle(ends)
        self.small(self.add("Merge", ends, {"N": 2}), a)

    # ---- Functions ----

    def body(self, shapes, outputs, size):
        """A function of these inputs and outputs; sometimes it reads values of the graph as well."""
        name = f"{self.prefix}f{len(self.functions)}"
        inner = Builder(self.draw, name + "_", self.functions, self.depth + 1)
        function = {"name": name}
        self.functions.append(function)
        given = [(f"{name}_x{i}", shape) for i, shape in enumerate(shapes)]
        inner.values = list(given)
        if self.depth == 0 and self.draw.random() < 0.3:
            inner.values.insert(0, self.pick())
        inner.grow(size)
        made = [inner.pick(shape)[0] for shape in outputs]
        dims = {False: [], True: [VECTOR]}
        function["input"] = [{"name": text, "dtype": "int32", "shape": dims[shape]}
                             for text, shape in given]
        function["output"] = [{"name": f"y{i}", "value": text, "dtype": "int32", "shape": dims[shape]}
                              for i, (text, shape) in enumerate(zip(made, outputs))]
        function["node"] = inner.nodes
        return function

    def call(self):
        arguments = [self.pick() for _ in range(self.draw.randint(1, 3))]
        shapes = [shape for _, shape in arguments]
        outputs = [self.draw.random() < 0.5 for _ in range(self.draw.randint(1, 2))]
        inputs = [text for text, _ in arguments]
        size = self.draw.randint(1, 5)
        kind = self.draw.choice(["Call", "If", "Case"])
        if kind == "Call":
            attr = {"f": self.body(shapes, outputs, size)["name"]}
        elif kind == "If":
            inputs.insert(0, self.predicate())
            attr = {branch: self.body(shapes, outputs, size)["name"]
                    for branch in ("then_branch", "else_branch")}
        else:
            four = self.add("Const", attr={"dtype": "int32", "value": 4})
            inputs.insert(0, self.add("FloorMod", [self.pick(False)[0], four]))
            attr = {"branches": [self.body(shapes, outputs, size)["name"] for _ in range(3)]}
        name = self.add(kind, inputs, attr)
        for i, shape in enumerate(outputs):
            self.keep(f"{name}:{i}", shape)

    def loop(self):
        """Counts to a number that is no more than five, with one or two values beside."""
        state = [self.pick() for _ in range(self.draw.randint(1, 2))]
        shapes = [False] + [shape for _, shape in state]
        body = self.body(shapes, shapes, self.draw.randint(1, 5))
        one = {"name": body["name"] + "_one", "op": "Const", "attr": {"dtype": "int32", "value": 1}}
        count = {"name": body["name"] + "_next", "op": "AddV2",
                 "input": [body["input"][0]["name"], one["name"]]}
        body["node"] += [one, count]
        body["output"][0]["value"] = count["name"]
        limit = {"name": body["name"] + "_limit", "op": "Const",
                 "attr": {"dtype": "int32", "value": self.draw.randint(0, 5)}}
        less = {"name": body["name"] + "_less", "op": "Less",
                "input": [body["input"][0]["name"], limit["name"]]}
        cond = {"name": body["name"] + "_cond", "input": body["input"], "node": [limit, less],
                "output": [{"name": "goes_on", "value": less["name"], "dtype": "bool", "shape": []}]}
        self.functions.append(cond)
        start = self.add("Const", attr={"dtype": "int32", "value": 0})
        name = self.add("While", [start] + [text for text, _ in state],
                        {"cond": cond["name"], "body": body["name"],
                         "parallel_iterations": self.draw.randint(1, 4)})
        for i, shape in enumerate(shapes):
            self.keep(f"{name}:{i}", shape)

    def grow(self, size):
        steps = [self.binary] * 6 + [self.unary] * 2 + [self.many, self.many, self.total,
                                                       self.quarter, self.select, self.switch]
        if self.depth < 2:
            steps += [self.call, self.loop]
        for _ in range(size):
            self.draw.choice(steps)()


class Part(Builder):
    """A graph of its own in the file. What it fetches waits for its updates."""

    def __init__(self, draw, prefix, functions, ranks):
        super().__init__(draw, prefix, functions, 0, ranks)
        for is_vector in (False, True):
            self.keep(*self.const(is_vector))
        variables = [self.variable() for _ in range(draw.choice([0, 0, 1, 2]))]
        self.grow(draw.randint(3, 25))
        updates = [self.update(*variable) for variable in variables
                   for _ in range(draw.randint(1, 2))]
        self.fetches = sorted({self.pick()[0] for _ in range(3)})
        last = self.add("Identity", [self.values[-1][0]] + [f"^{update}" for update in updates])
        self.fetches.append(last)

    def variable(self):
        is_vector = self.draw.random() < 0.5
        initial = self.const(is_vector)[0]
        name = self.add("VariableV2", attr={"dtype": "int32", "initializer": initial,
                                            "shape": [VECTOR] if is_vector else []})
        self.small(name, is_vector)
        return name, is_vector

    def update(self, variable, is_vector):
        return self.add(self.draw.choice(["AssignAdd", "AssignSub"]),
                        [variable, self.pick(is_vector)[0]])


def make(seed, ranks, parts=PARTS):
    """A graph file's content, and what to fetch of it."""
    draw = random.Random(seed)
    nodes, functions, fetches = [], [], []
    for i in range(parts):
        part = Part(draw, f"p{i}", functions, ranks)
        nodes += part.nodes
        fetches += part.fetches
    return {"node": nodes, "library": {"function": functions}}, fetches
