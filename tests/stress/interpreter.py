"""Runs a graph the simple way: one node after the other, one step after the other, with NumPy.

It knows the ops that graphs.py makes. A read of a variable sees what the step before left; the updates
of a step are applied at its end, in any order, since graphs.py makes only such as commute.
"""
import numpy

DEAD = object()


def as_int(value):
    return numpy.asarray(value, dtype=numpy.int32)


OPS = {
    "Identity": lambda x: x,
    "AddV2": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Maximum": numpy.maximum,
    "Minimum": numpy.minimum,
    "FloorMod": numpy.mod,
    "AddN": lambda *values: sum(values[1:], values[0]),
    "Neg": lambda x: -x,
    "Abs": numpy.abs,
    "Square": lambda x: x * x,
    "Less": lambda x, y: x < y,
    "SelectV2": numpy.where,
    "Sum": lambda x, axes: as_int(x.sum(axis=tuple(axes.tolist()))),
    "Floor": numpy.floor,
}
TYPES = {"int32": numpy.int32, "float32": numpy.float32}


class Scope:
    """The nodes of the graph or of a function's body, with the values known so far."""

    def __init__(self, run, nodes, values, outer=None):
        self.run, self.values, self.outer = run, values, outer
        self.nodes = {node["name"]: node for node in nodes}

    def value(self, text):
        name, _, port = text.partition(":")
        return self.outputs(name)[int(port or 0)]

    def outputs(self, name):
        if name not in self.values:
            if name not in self.nodes:
                return self.outer.outputs(name)
            self.values[name] = self.evaluate(self.nodes[name])
        return self.values[name]

    def evaluate(self, node):
        op, attrs = node["op"], node.get("attr", {})
        for control in node.get("input", []):
            if control.startswith("^"):
                self.outputs(control[1:])
        inputs = [text for text in node.get("input", []) if not text.startswith("^")]
        if op in ("VariableV2", "AssignAdd", "AssignSub"):
            return self.state(op, node["name"], inputs)
        return self.compute(op, attrs, [self.value(text) for text in inputs])

    def state(self, op, name, inputs):
        if op == "VariableV2":
            return [self.run.state[name]]
        added = self.value(inputs[1])
        self.run.updates.append((inputs[0], added if op == "AssignAdd" else -added))
        return [None]  # nobody reads it

    def compute(self, op, attrs, inputs):
        if op == "Const":
            return [numpy.asarray(attrs["value"], dtype=TYPES[attrs["dtype"]])]
        if op == "Merge":
            return [value for value in inputs if value is not DEAD]
        if any(value is DEAD for value in inputs):
            return [DEAD]
        if op == "Switch":
            return [DEAD, inputs[0]] if inputs[1] else [inputs[0], DEAD]
        if op == "Cast":
            return [inputs[0].astype(TYPES[attrs["DstT"]])]
        if op == "Call":
            return self.call(attrs["f"], inputs)
        if op == "If":
            return self.call(attrs["then_branch" if inputs[0] else "else_branch"], inputs[1:])
        if op == "Case":
            last = len(attrs["branches"]) - 1
            index = int(inputs[0])
            return self.call(attrs["branches"][index if 0 <= index <= last else last], inputs[1:])
        if op == "While":
            while self.call(attrs["cond"], inputs)[0]:
                inputs = self.call(attrs["body"], inputs)
            return inputs
        return [OPS[op](*inputs)]

    def call(self, name, arguments):
        function = self.run.functions[name]
        values = {given["name"]: [value] for given, value in zip(function["input"], arguments)}
        scope = Scope(self.run, function["node"], values, self.run.graph)
        return [scope.value(output["value"]) for output in function["output"]]


class Run:
    def __init__(self, graph):
        self.nodes = graph["node"]
        self.functions = {function["name"]: function
                          for function in graph.get("library", {}).get("function", [])}
        self.updates, self.state = [], {}
        self.graph = Scope(self, self.nodes, {})
        for node in self.nodes:
            if node["op"] == "VariableV2":
                self.state[node["name"]] = self.graph.value(node["attr"]["initializer"])

    def step(self, fetches):
        self.updates = []
        self.graph = Scope(self, self.nodes, {})
        fetched = [self.graph.value(fetch).tolist() for fetch in fetches]
        for name, added in self.updates:
            self.state[name] = self.state[name] + added
        return fetched


def interpret(graph, fetches, steps):
    """What the last of so many steps fetches."""
    run = Run(graph)
    for _ in range(steps):
        fetched = run.step(fetches)
    return fetched
