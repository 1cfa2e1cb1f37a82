"""What shardc and XLA send for the same programs on the same mesh.

python/tests$ PYTHONPATH=.. V/bin/python communication.py BUILD [NAME...]

V has the packages of requirements.txt, and BUILD is the build folder, for
shardc-compile. Each program of make_goldens.py is compiled by XLA for eight CPU
devices, a mesh of 2x4, with the shardings of its arguments at its results too, and
the collectives of the compiled HLO are counted. Bytes are those that a device sends, by
the formulas of docs/Glossary.md. Writes the table of docs/JAX.md, unless NAMEs are
given. Exit code 1 if shardc sends more with --partition=cheapest."""

import json
import math
import pathlib
import re
import subprocess
import sys

import make_goldens as goldens  # First: it asks for eight devices.

import jax
import numpy as np
import optax

import steps

BEGIN, END = "<!-- communication -->", "<!-- end of communication -->"
BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4,
         "f32": 4, "s64": 8, "u64": 8, "f64": 8}
# The bytes that a device of n sends, of s bytes of the result on a device.
SENT = {"all-reduce": lambda s, n: 2 * (n - 1) / n * s,
        "all-gather": lambda s, n: (n - 1) / n * s,
        "reduce-scatter": lambda s, n: (n - 1) * s,
        "all-to-all": lambda s, n: (n - 1) / n * s,
        "collective-permute": lambda s, n: s}
COLLECTIVE = re.compile(
    r"= (?P<types>\(.*?\)|\S+) (?P<kind>" + "|".join(SENT) + r")(?P<start>-start)?\(")
ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")


def group_size(line):
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]", line):
        return int(match.group(2))
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return match.group(1).count(",") + 1
    return jax.device_count()


def count_hlo(text):
    """The collectives of compiled HLO and the bytes that a device sends in them."""
    number, sent = 0, 0.0
    for line in text.splitlines():
        match = COLLECTIVE.search(line)
        if not match:
            continue
        arrays = [BYTES[kind] * math.prod(map(int, filter(None, shape.split(","))))
                  for kind, shape in ARRAY.findall(match["types"])]
        # What starts a collective returns its operands too.
        size = sum(arrays[len(arrays) // 2:] if match["start"] else arrays)
        number += 1
        sent += SENT[match["kind"]](size, group_size(line))
    return number, sent


def count_xla(step, args, shardings, results):
    jitted = jax.jit(step, in_shardings=shardings, out_shardings=results)
    return count_hlo(jitted.lower(*args).compile().as_text())


def count_shardc(build, model, *flags):
    out = subprocess.run([build / "bin" / "shardc-compile", model, "--json", *flags],
                         check=True, capture_output=True, text=True).stdout
    collectives = json.loads(out)["collectives"]
    return (sum(each["runs"] for each in collectives),
            sum(each["wire_bytes"] * each["runs"] for each in collectives))


def as_step(loss_fn, optimizer):
    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step


def program(name):
    """A step of the program and its arguments."""
    if name in steps.CASES:
        number = list(steps.CASES).index(name)
        step, params, state, x, y = steps.CASES[name](np.random.default_rng(100 + number))
    else:
        number = list(goldens.LOSSES).index(name)
        loss_fn, params, x, y = goldens.LOSSES[name](np.random.default_rng(number))
        _, optimizer = goldens.get_optimizers(number, name)
        step, state = as_step(loss_fn, optimizer), optimizer.init(params)
    return step, (params, state, goldens.rows(x, 0), goldens.rows(y, 0))


def compare(build, name):
    step, args = program(name)
    args = jax.tree.map(np.asarray, args)
    shardings = (*(jax.tree.map(goldens.at_rest, tree) for tree in args[:2]),
                 *(jax.tree.map(goldens.over_rows, tree) for tree in args[2:]))
    everywhere = jax.sharding.NamedSharding(goldens.MESH, jax.sharding.PartitionSpec())
    xla = count_xla(step, args, shardings, (*shardings[:2], everywhere))
    model = goldens.GOLDEN / name / "model.mlir"
    mesh = "--mesh=data=2,model=4"
    return (xla, count_shardc(build, model, mesh),
            count_shardc(build, model, mesh, "--partition=cheapest", "--objective=bytes"))


def main():
    build, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    lines = ["| program | XLA | shardc | shardc, cheapest |", "|---|---|---|---|"]
    more = []
    for name in wanted or (*goldens.LOSSES, *steps.CASES):
        if not (goldens.GOLDEN / name / "model.mlir").exists():
            continue
        counts = compare(build, name)
        lines.append("| `{}` | {} |".format(name, " | ".join(
            f"{number}: {sent:.0f}" for number, sent in counts)))
        print(lines[-1], flush=True)
        if counts[2][1] > counts[0][1]:
            more.append(name)
    if more:
        sys.exit(f"shardc sends more than XLA: {', '.join(more)}")


if __name__ == "__main__":
    main()
