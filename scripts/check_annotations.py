#!/usr/bin/env python3
"""Runs models with random annotations and compares each with its unpartitioned
program: shardings open and closed, several axes on a dimension, priorities,
constraints, shardings of gradients and states, sizes that do not divide, tied
weights, residuals, clipping, microbatches.

  check_annotations.py --count=N [--seed=S] [--jobs=J]

A run must agree (padding is poisoned with NaN) and send as many bytes as the
compiler reports. Programs are found on PATH. Python's standard library alone.
"""

import argparse
import concurrent.futures
import json
import math
import os
import random
import subprocess
import sys
import tempfile

from check_random import write_npz


class Model:
    """One random module and data for it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        choose = self.rng.choice
        self.axes = [("a", choose([2, 3, 4])), ("b", choose([2, 3]))]
        if self.chance(0.3):
            self.axes.append(("c", 2))
        self.batch, self.inputs = choose([4, 5, 8, 12]), choose([3, 4, 6, 8])
        self.hidden, self.outputs = choose([4, 5, 6, 8]), choose([1, 2, 4, 5])
        # Half of the cases take the batch in parts, which every device has rows of.
        self.microbatches = choose([1, 1, 2, 3])
        if self.microbatches > 1:
            self.batch = self.microbatches * math.prod(size for _, size in self.axes)
        self.classes = self.outputs > 1 and self.chance(0.3)
        self.lines = []

    def chance(self, probability):
        return self.rng.random() < probability

    def sharding(self, rank):
        """Text of a random sharding, without its mnemonic."""
        names = [name for name, _ in self.axes]
        self.rng.shuffle(names)
        dims = [[] for _ in range(rank)]
        for name in names:
            place = self.rng.randrange(rank + 1)
            if place < rank:
                dims[place].append(f'"{name}"')
        texts = []
        for dim in dims:
            if self.chance(0.25):
                dim = dim + ["?"]
            priority = f"p{self.rng.randrange(2)}" if self.chance(0.2) else ""
            texts.append("{" + ", ".join(dim) + "}" + priority)
        return f"<@mesh, [{', '.join(texts)}]>"

    def annotation(self, key, rank, probability):
        if not self.chance(probability):
            return ""
        return f", shardc.{key} = #shardc.sharding{self.sharding(rank)}"

    def argument(self, name, role, shape, element="f32", states=False):
        rank = len(shape)
        kind = tensor(shape, element)
        init = {"parameter": ", he_normal" if rank == 2 else ", constant(0.1)"}.get(role, "")
        text = f'      %{name}: {kind} {{shardc.role = #shardc.{role}<"{name}"{init}>'
        text += self.annotation("sharding", rank, 0.7)
        if role == "parameter":
            if states:
                text += self.annotation("state_sharding", rank, 0.3)
            text += self.annotation("grad_sharding", rank, 0.2)
        return text + "}"

    def constrain(self, name, shape):
        """`name`, or a constraint on it."""
        if not self.chance(0.3):
            return name
        self.lines.append(
            f"    %{name}c = shardc.sharding_constraint %{name} sharding = {self.sharding(len(shape))} : {tensor(shape)}"
        )
        return f"{name}c"

    def linear(self, result, x, w, b, size, out):
        types = [tensor((self.batch, size)), tensor((size, out)), tensor((out,))]
        self.lines.append(
            f"    %{result} = shardc.linear %{x}, %{w}, %{b} : {', '.join(types)} -> {tensor((self.batch, out))}"
        )

    def text(self):
        batch, inputs, hidden, outputs = self.batch, self.inputs, self.hidden, self.outputs
        activation = self.rng.choice(["relu", "tanh", "gelu"])
        optimizer = self.rng.choice(["sgd", "momentum"])
        arguments = [self.argument("x", "input", (batch, inputs))]
        if self.classes:
            arguments.append(self.argument("y", "label", (batch,), "i32"))
        else:
            arguments.append(self.argument("y", "label", (batch, outputs)))
        sizes = [inputs, hidden, hidden, outputs]
        for i in range(3):
            for name, shape in ((f"w{i}", (sizes[i], sizes[i + 1])), (f"b{i}", (sizes[i + 1],))):
                arguments.append(self.argument(name, "parameter", shape, states=optimizer == "momentum"))

        wide = (batch, hidden)
        self.linear("z0", "x", "w0", "b0", inputs, hidden)
        self.lines.append(f"    %h0 = shardc.{activation} %{self.constrain('z0', wide)} : {tensor(wide)}")
        value = self.constrain("h0", wide)
        # The middle layer once, or twice with the same weight.
        for i in range(1, 3 if self.chance(0.25) else 2):
            self.linear(f"z{i}", value, "w1", "b1", hidden, hidden)
            self.lines.append(f"    %h{i} = shardc.{activation} %z{i} : {tensor(wide)}")
            branch = self.constrain(f"h{i}", wide)
            if self.chance(0.3):
                self.lines.append(f"    %r{i} = shardc.add %{value}, %{branch} : {tensor(wide)}")
                branch = f"r{i}"
            value = branch
        self.linear("o", value, "w2", "b2", hidden, outputs)
        result = (batch, outputs)
        value = self.constrain("o", result)
        op, labels = ("softmax_cross_entropy", tensor((batch,), "i32")) if self.classes else ("mse", "")
        types = tensor(result) + (f", {labels}" if labels else "")
        self.lines.append(f"    %loss = shardc.{op} %{value}, %y : {types} -> tensor<f32>")

        rate = "learning_rate = 0.1" + (", momentum = 0.9" if optimizer == "momentum" else "")
        clip = ", clip_norm = 0.3" if self.chance(0.5) else ""
        parts = f", microbatches = {self.microbatches}" if self.microbatches > 1 else ""
        mesh = ", ".join(f'"{name}" = {size}' for name, size in self.axes)
        return "\n".join(
            [
                f"module @random attributes {{shardc.training = #shardc.training<loss = @loss, "
                f"optimizer = <{optimizer}, {rate}>{clip}{parts}>}} {{",
                f"  shardc.mesh @mesh <[{mesh}]>",
                "  func.func @loss(",
                ",\n".join(arguments) + ") -> tensor<f32> {",
                *self.lines,
                "    return %loss : tensor<f32>\n  }\n}\n",
            ]
        )

    def write_data(self, path):
        rows = 2 * self.batch

        def normal(size):
            return ("<f4", (rows, size), [self.rng.gauss(0, 1) for _ in range(rows * size)])

        labels = ("<i4", (rows,), [self.rng.randrange(self.outputs) for _ in range(rows)])
        write_npz(path, {"x": normal(self.inputs), "y": labels if self.classes else normal(self.outputs)})


def tensor(shape, element="f32"):
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def execute(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def run_case(seed):
    """What went wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        path, data = os.path.join(folder, "m.mlir"), os.path.join(folder, "d.npz")
        model = Model(seed)
        text = model.text()
        with open(path, "w") as file:
            file.write(text)
        model.write_data(data)
        run = ["shardc-run", path, f"--data={data}", "--steps=2", "--check-reference", "--tolerance=1e-3", "--json"]
        ran, reported = execute(run), execute(["shardc-compile", path, "--report=comm", "--json"])
        for done in (ran, reported):
            if done.returncode:
                return f"exit code {done.returncode}\n{done.stdout}{done.stderr}\n{text}"
        counted = json.loads(ran.stdout)["wire_bytes_per_step"]
        promised = json.loads(reported.stdout)["wire_bytes_per_device"]
        if counted != promised:
            return f"sent {counted} bytes per step, reported {promised}\n{text}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others follow it")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for seed, failure in zip(seeds, pool.map(run_case, seeds)):
            if failure:
                failed += 1
                print(f"FAILED check_annotations.py --seed={seed} --count=1\n{failure}")
    print(f"{len(seeds) - failed} of {len(seeds)} randomly annotated programs agree with the unpartitioned ones")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
