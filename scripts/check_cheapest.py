#!/usr/bin/env python3
"""Checks that a plan of --partition=cheapest is never worse than that of
--partition=follow, by the numbers that the report prints of a train step: the
estimated time, with and without overlap, or the bytes that a device sends.

  check_cheapest.py [--count=N] [--seed=S] [MODEL.mlir ...]

Compares the models given, on every machine, and N random ones: layers, strategy,
mesh, machine, batch and optimizer are drawn from the seed. Programs are found on
PATH. Python's standard library alone.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

MACHINES = ["cpu", "a100-80", "h100"]
# The axes that a strategy of shardc-gen shards over.
STRATEGIES = {
    "dp": ["data"],
    "zero1": ["data"],
    "zero2": ["data"],
    "fsdp": ["data"],
    "tp": ["model"],
    "dp+tp": ["data", "model"],
    "fsdp+tp": ["data", "model"],
    "hsdp": ["replica", "shard"],
}
# Printed sums of the same seconds in another order may differ so much.
ROUNDING = 1e-9


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def check_overlap(time):
    """The estimate with overlap is between the longer of compute and communication
    and their sum (docs/AutoSharding.md, Guarantees)."""
    computing = time["compute_microseconds"] + time["memory_microseconds"]
    communicating = time["communication_microseconds"]
    least = max(computing, communicating) * (1 - ROUNDING)
    most = (computing + communicating) * (1 + ROUNDING)
    if not least <= time["overlapped_microseconds"] <= most:
        sys.exit(f"the estimate with overlap is not between {least} and {most}: {time}")


def report(model, partition, objective, machine):
    """What the report says of a train step: {name of the number: value}."""
    program = json.loads(run(["shardc-compile", model, f"--partition={partition}",
                              f"--objective={objective}", f"--machine={machine}", "--json"]))
    if objective == "bytes":
        return {"bytes": program["wire_bytes_per_device"]}
    time = program["time"]
    check_overlap(time)
    return {
        "microseconds": time["microseconds"],
        "microseconds with overlap": time["overlapped_microseconds"],
    }


def generate(draw, path):
    """Writes a random model to `path`; returns how it was made."""
    layers = [draw.choice([8, 10, 17, 64, 128, 256, 784, 1024])
              for _ in range(draw.randint(2, 5))]
    strategy = draw.choice(sorted(STRATEGIES))
    axes = STRATEGIES[strategy]
    sizes = [2, 4] if len(axes) > 1 else [2, 4, 8]
    flags = [
        "--layers=" + ",".join(map(str, layers)),
        "--strategy=" + strategy,
        "--mesh=" + ",".join(f"{axis}={draw.choice(sizes)}" for axis in axes),
        f"--batch-size={draw.choice([64, 96, 512])}",
        "--optimizer=" + draw.choice(["sgd", "momentum", "adam", "adamw"]),
        "--activation=" + draw.choice(["relu", "gelu", "tanh"]),
    ]
    flags += draw.choice([[], [], ["--layer-norm"], ["--clip-norm=1"], ["--microbatches=2"]])
    run(["shardc-gen", *flags, "-o", path])
    return "shardc-gen " + " ".join(flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()

    draw = random.Random(arguments.seed)
    compared = worse = better = 0
    # By number of the report: its sum with follow, and with cheapest.
    sums = {}

    def compare(name, model, objective, machine):
        nonlocal compared, worse, better
        follow = report(model, "follow", objective, machine)
        cheapest = report(model, "cheapest", objective, machine)
        compared += 1
        for key, value in follow.items():
            before, after = sums.get(key, (0, 0))
            sums[key] = (before + value, after + cheapest[key])
        better += any(cheapest[key] < value * (1 - ROUNDING) for key, value in follow.items())
        wrong = [key for key, value in follow.items() if cheapest[key] > value * (1 + ROUNDING)]
        worse += bool(wrong)
        for key in wrong:
            print(f"WORSE: {name} --objective={objective} --machine={machine}: {key}: "
                  f"follow {follow[key]}, cheapest {cheapest[key]}", flush=True)

    for model in arguments.models:
        for machine in MACHINES:
            compare(model, model, "time", machine)
        compare(model, model, "bytes", MACHINES[0])
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.mlir")
        for _ in range(arguments.count):
            name = generate(draw, model)
            objective = draw.choice(["time", "time", "time", "bytes"])
            compare(name, model, objective, draw.choice(MACHINES))
    print(f"{compared} plans compared: cheapest is better than follow in {better}, worse in {worse}")
    for key, (before, after) in sums.items():
        print(f"sum of {key}: {before:.6g} with follow, {after:.6g} with cheapest")
    if compared == 0 or worse:
        sys.exit(1)


if __name__ == "__main__":
    main()
