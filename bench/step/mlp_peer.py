#!/usr/bin/python3
"""The 784-256-128-10 training step of examples/fashion_mnist_mlp.json in Troupe and in PyTorch
(Debian's python3-torch), one process with one thread each, taken alternately.

Usage: mlp_peer.py TROUPE GRAPH [STEPS]"""
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import torch  # noqa: E402

torch.set_num_threads(1)
BATCH = 256


def torch_ms(steps):
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss_of = torch.nn.CrossEntropyLoss()
    data = torch.rand(60000, 784)
    labels = torch.randint(0, 10, (60000,))
    start = None
    for step in range(steps + 10):
        if step == 10:
            start = time.perf_counter()
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % 60000
        loss = loss_of(model(data[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.perf_counter() - start) / steps * 1000


def troupe_ms(command, graph, steps):
    result = subprocess.run([command, "run", graph, "--workers", "1", "--steps", str(steps),
                             "--progress", "never"], stdout=subprocess.PIPE, check=True)
    return BATCH / json.loads(result.stdout)["examples_per_second"] * 1000


def main():
    command, graph = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    ours, theirs = [], []
    for _ in range(5):
        ours.append(troupe_ms(command, graph, steps))
        theirs.append(torch_ms(steps))
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(json.dumps({
        "troupe_ms": {"median": statistics.median(ours), "min": min(ours), "max": max(ours)},
        "torch_ms": {"median": statistics.median(theirs), "min": min(theirs), "max": max(theirs)},
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)},
    }))


if __name__ == "__main__":
    main()
