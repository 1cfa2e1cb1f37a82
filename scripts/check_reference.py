#!/usr/bin/env python3
"""Runs models on many meshes and compares each with its unpartitioned program.

  check_reference.py --mode=grid             every strategy on every listed mesh
  check_reference.py --mode=random --count=N random models, strategies, meshes
  check_reference.py --mode=exact            where f32 is exact: bit-equal

Sizes mostly do not divide. --check-reference poisons padding with NaN, so one
padded element that counts fails the run. With --shard=I/N only every Nth case
runs. Programs are found on PATH. Needs Python's standard library alone.
"""

import argparse
import concurrent.futures
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

MESHES = {
    "none": [""],
    "dp": ["data=1", "data=2", "data=3", "data=4", "data=6", "data=8", "data=4,model=2", "data=2,model=3"],
    "zero1": ["data=2", "data=3", "data=4", "data=6", "data=8"],
    "zero2": ["data=2", "data=3", "data=4", "data=6", "data=8"],
    "fsdp": ["data=1", "data=2", "data=3", "data=4", "data=6", "data=8"],
    "tp": ["model=1", "model=2", "model=3", "model=4", "model=6", "model=8"],
    "dp+tp": ["data=4,model=2", "data=2,model=4", "data=2,model=3", "data=3,model=2"],
    "fsdp+tp": ["data=4,model=2", "data=2,model=4", "data=2,model=3", "data=3,model=2"],
    "hsdp": ["replica=2,shard=2", "replica=4,shard=2", "replica=2,shard=4", "replica=2,shard=3"],
    "hsdp+tp": ["replica=2,shard=2,model=2", "replica=1,shard=3,model=2", "replica=2,shard=1,model=4"],
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
    exact = case["exact"]
    draw = (lambda: float(rng.randint(-1, 1))) if exact else (lambda: rng.gauss(0, 1))
    arrays = {"x": ("<f4", (rows, layers[0]), [draw() for _ in range(rows * layers[0])])}
    if case["loss"] == "mse":
        arrays["y"] = ("<f4", (rows, layers[-1]), [draw() for _ in range(rows * layers[-1])])
    else:
        arrays["y"] = ("<i4", (rows,), [rng.randrange(layers[-1]) for _ in range(rows)])
    write_npz(path, arrays)


def make_parameters(rng, layers, path):
    arrays = {}
    for i, (fan_in, out) in enumerate(zip(layers, layers[1:])):
        arrays[f"w{i}"] = ("<f4", (fan_in, out), [float(rng.randint(-1, 1)) for _ in range(fan_in * out)])
        arrays[f"b{i}"] = ("<f4", (out,), [float(rng.randint(-1, 1)) for _ in range(out)])
    write_npz(path, arrays)


def grid_cases(rng):
    for strategy, meshes in MESHES.items():
        for i, mesh in enumerate(meshes):
            for j, (layers, batch) in enumerate([([10, 32, 16, 1], 16), ([7, 13, 5, 3], 13)]):
                yield dict(
                    strategy=strategy, mesh=mesh, layers=layers, batch=batch, activation=ACTIVATIONS[i % 6],
                    optimizer=OPTIMIZERS[(i + j) % 4], loss=LOSSES[(i + j) % 2 if layers[-1] > 1 else 0],
                    exact=False, flags=[], steps=3,
                )  # fmt: skip


def random_cases(rng, count):
    for _ in range(count):
        strategy = rng.choice([name for name in MESHES if name != "none"])
        axes = [entry.split("=")[0] for entry in MESHES[strategy][-1].split(",")]
        if strategy == "dp":
            axes = ["data"]
        sizes = [rng.choice([1, 2, 3, 4, 6] if len(axes) > 1 else [2, 3, 4, 5, 6, 7, 8, 12]) for _ in axes]
        layers = [rng.randint(1, 40) for _ in range(rng.randint(2, 5))]
        loss = rng.choice(LOSSES)
        if loss != "mse":
            layers[-1] = max(2, layers[-1])
        flags = rng.choice([[], ["--layer-norm"], ["--dropout=0.2"], ["--clip-norm=0.5"], ["--weight-decay=0.01"]])
        yield dict(
            strategy=strategy, mesh=",".join(f"{a}={s}" for a, s in zip(axes, sizes)), layers=layers,
            batch=rng.randint(1, 50), activation=rng.choice(ACTIVATIONS), optimizer=rng.choice(OPTIMIZERS),
            loss=loss, exact=False, flags=flags, steps=3,
        )  # fmt: skip


def exact_cases(rng):
    """Small integers, relu, powers of two in the rate and in what is averaged over:
    no value needs more than 24 bits."""
    for strategy, meshes in MESHES.items():
        for mesh in meshes:
            layers = [5, rng.choice([6, 7, 9]), 1]
            yield dict(
                strategy=strategy, mesh=mesh, layers=layers, batch=4, activation="relu", optimizer="sgd",
                loss="mse", exact=True, flags=[], steps=2,
            )  # fmt: skip


def run_case(number, case, seed):
    rng = random.Random(seed * 1000003 + number)
    with tempfile.TemporaryDirectory() as folder:
        model, data = os.path.join(folder, "m.mlir"), os.path.join(folder, "d.npz")
        gen = [
            "shardc-gen", f"--layers={','.join(map(str, case['layers']))}", f"--activation={case['activation']}",
            f"--optimizer={case['optimizer']}", f"--loss={case['loss']}", f"--strategy={case['strategy']}",
            f"--batch-size={case['batch']}", f"--learning-rate={0.25 if case['exact'] else 0.01}", "-o", model,
        ] + case["flags"]  # fmt: skip
        if case["mesh"]:
            gen.append(f"--mesh={case['mesh']}")
        make_data(rng, case, data)
        run = ["shardc-run", model, f"--data={data}", "--check-reference", f"--steps={case['steps']}", "--epochs=9"]
        if case["exact"]:
            parameters = os.path.join(folder, "p.npz")
            make_parameters(rng, case["layers"], parameters)
            run.append(f"--load-params={parameters}")
        elif case["optimizer"].startswith("adam"):
            # Adam divides a gradient by its own magnitude: one that is zero but for
            # rounding moves its parameter by up to the learning rate.
            run.append("--tolerance=0.01")
        output = ""
        for command in (gen, run):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            output += done.stdout
            if done.returncode:
                return " ".join(gen), f"{' '.join(run)}\nexit code {done.returncode}\n{output}"
        line = next((text for text in output.splitlines() if text.startswith("reference")), "")
        if not line or (case["exact"] and "bit-equal" not in line):
            return " ".join(gen), f"{' '.join(run)}\nexpected a bit-equal reference\n{output}"
        return " ".join(gen), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["grid", "random", "exact"], required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="cases of --mode=random")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth case from the Ith")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    cases = {
        "grid": lambda: grid_cases(rng),
        "random": lambda: random_cases(rng, arguments.count),
        "exact": lambda: exact_cases(rng),
    }[arguments.mode]()
    index, total = map(int, arguments.shard.split("/"))
    cases = [(i, case) for i, case in enumerate(cases) if i % total == index]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for command, failure in pool.map(lambda it: run_case(*it, arguments.seed), cases):
            if failure:
                failed += 1
                print(f"FAILED {command}\n{failure}")
    print(f"{len(cases) - failed} of {len(cases)} {arguments.mode} cases agree with the unpartitioned program")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
