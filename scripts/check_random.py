#!/usr/bin/env python3
"""Runs random models, sharded by random strategies over random meshes, beside their
unpartitioned programs and compares.

  check_random.py [--count=N] [--seed=S] [--jobs=J] [--pipelines]

With --pipelines each is a pipeline of two or three ranks, by a random schedule.

Sizes mostly do not divide. --check-reference poisons padding with NaN, so one
padded element that counts fails the run. Programs are found on PATH. Needs Python's
standard library alone. scripts/check-strategies.sh goes through a fixed list.
"""

import argparse
import concurrent.futures
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

AXES = {
    "dp": ["data"],
    "zero1": ["data"],
    "zero2": ["data"],
    "fsdp": ["data"],
    "tp": ["model"],
    "dp+tp": ["data", "model"],
    "fsdp+tp": ["data", "model"],
    "hsdp": ["replica", "shard"],
    "hsdp+tp": ["replica", "shard", "model"],
}
ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"]
OPTIMIZERS = ["sgd", "momentum", "adam", "adamw"]
LOSSES = ["mse", "softmax_cross_entropy"]


def write_npz(path, arrays):
    """arrays: name -> (dtype '<f4' or '<i4', shape, flat values)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (dtype, shape, values) in arrays.items():
            text = "(" + "".join(f"{size}," for size in shape) + ")"
            header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {text}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            code = "f" if dtype == "<f4" else "i"
            archive.writestr(
                f"{name}.npy",
                b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                + struct.pack(f"<{len(values)}{code}", *values),
            )  # fmt: skip


def make_data(rng, case, path):
    rows, layers = case["batch"] * 2, case["layers"]
    arrays = {"x": ("<f4", (rows, layers[0]), [rng.gauss(0, 1) for _ in range(rows * layers[0])])}
    if case["loss"] == "mse":
        arrays["y"] = ("<f4", (rows, layers[-1]), [rng.gauss(0, 1) for _ in range(rows * layers[-1])])
    else:
        arrays["y"] = ("<i4", (rows,), [rng.randrange(layers[-1]) for _ in range(rows)])
    write_npz(path, arrays)


def random_cases(rng, count):
    for _ in range(count):
        strategy = rng.choice(list(AXES))
        axes = AXES[strategy]
        sizes = [rng.choice([1, 2, 3, 4, 6] if len(axes) > 1 else [2, 3, 4, 5, 6, 7, 8, 12]) for _ in axes]
        layers = [rng.randint(1, 40) for _ in range(rng.randint(2, 5))]
        loss = rng.choice(LOSSES)
        if loss != "mse":
            layers[-1] = max(2, layers[-1])
        flags = rng.choice([[], ["--layer-norm"], ["--dropout=0.2"], ["--clip-norm=0.5"], ["--weight-decay=0.01"]])
        batch, microbatches = rng.randint(1, 50), rng.choice([1, 1, 2, 3])
        if microbatches > 1:
            # Every device has as many rows in each.
            multiple = microbatches * math.prod(s for a, s in zip(axes, sizes) if a != "model")
            batch += -batch % multiple
        yield dict(
            strategy=strategy, mesh=",".join(f"{a}={s}" for a, s in zip(axes, sizes)), layers=layers,
            batch=batch, microbatches=microbatches, activation=rng.choice(ACTIVATIONS), optimizer=rng.choice(OPTIMIZERS),
            loss=loss, flags=flags, steps=3,
        )  # fmt: skip


def add_pipeline(rng, case):
    """Makes `case` a pipeline: its microbatches, and flags of shardc-run."""
    stages, schedule = rng.choice([2, 2, 3]), rng.choice(["gpipe", "1f1b", "interleaved", "zero-bubble"])
    flags = [f"--stages={stages}", f"--pipeline-schedule={schedule}"]
    microbatches = rng.choice([1, stages, 3, 5, 4 * stages])
    if schedule == "interleaved":
        microbatches = stages * rng.choice([1, 2, 4])
        flags.append("--virtual-stages=2")
    rows = math.prod(int(axis.split("=")[1]) for axis in case["mesh"].split(",") if not axis.startswith("model"))
    for chance, flag in ((0.2, "--dtype=bf16"), (0.25, "--partition=cheapest"), (0.2, "--regather")):
        if rng.random() < chance:
            flags.append(flag)
    layers = case["layers"] + [rng.randint(2, 40) for _ in range(len(case["layers"]), 4)]
    case.update(microbatches=microbatches, batch=microbatches * rows * rng.randint(1, 3), layers=layers, run=flags)


def run_case(number, case, seed):
    rng = random.Random(seed * 1000003 + number)
    with tempfile.TemporaryDirectory() as folder:
        model, data = os.path.join(folder, "m.mlir"), os.path.join(folder, "d.npz")
        gen = [
            "shardc-gen", f"--layers={','.join(map(str, case['layers']))}", f"--activation={case['activation']}",
            f"--optimizer={case['optimizer']}", f"--loss={case['loss']}", f"--strategy={case['strategy']}",
            f"--batch-size={case['batch']}", f"--microbatches={case['microbatches']}", "--learning-rate=0.01",
            f"--mesh={case['mesh']}", "-o", model,
        ] + case["flags"]  # fmt: skip
        make_data(rng, case, data)
        run = ["shardc-run", model, f"--data={data}", "--check-reference", f"--steps={case['steps']}", "--epochs=9"]
        run += case.get("run", [])
        if case["optimizer"].startswith("adam"):
            # Adam divides a gradient by its own magnitude: one that is zero but for
            # rounding moves its parameter by up to the learning rate.
            run.append("--tolerance=0.01")
        output = ""
        for command in (gen, run):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            output += done.stdout
            if done.returncode:
                return " ".join(gen), f"{' '.join(run)}\nexit code {done.returncode}\n{output}"
        if not any(line.startswith("reference") for line in output.splitlines()):
            return " ".join(gen), f"{' '.join(run)}\nexpected a line on the reference\n{output}"
        return " ".join(gen), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--pipelines", action="store_true")
    arguments = parser.parse_args()
    cases = list(enumerate(random_cases(random.Random(arguments.seed), arguments.count)))
    if arguments.pipelines:
        rng = random.Random(arguments.seed + 1)
        for _, case in cases:
            add_pipeline(rng, case)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for command, failure in pool.map(lambda it: run_case(*it, arguments.seed), cases):
            if failure:
                failed += 1
                print(f"FAILED {command}\n{failure}")
    print(f"{len(cases) - failed} of {len(cases)} random cases agree with the unpartitioned program")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
