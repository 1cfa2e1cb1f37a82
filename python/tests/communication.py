"""What shardc and XLA send for the same programs on the same mesh.

python/tests$ PYTHONPATH=.. V/bin/python communication.py BUILD [NAME...]

V has the packages of ../requirements-test.txt, and BUILD is the build folder, for
shardc-compile. Each program of make_goldens.py is compiled by XLA for eight CPU
devices, a mesh of 2x4, with the shardings of its arguments at its results too, and
the collectives of the compiled HLO are counted. Bytes are those that a device sends in
a step, by the formulas of docs/CommandLine.md. Writes communication.json beside each
model: [collectives, bytes] of "xla", of shardc as annotated ("follow") and with
--partition=cheapest --objective=bytes. Exit code 1 if the latter sends more than XLA."""

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

import programs

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


def runs_of_lines(text):
    """The lines of HLO, and how often each runs: as often as the loop around it."""
    computation, computations, loops = "", {}, {}
    for line in text.splitlines():
        if header := re.match(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$", line):
            computation = header[1]
        computations.setdefault(computation, []).append(line)
        if loop := re.search(r" while\(.* body=%?([\w.-]+)", line):
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
            loops[loop[1]] = (computation, int(trips[1]) if trips else 1)
    for name, lines in computations.items():
        runs, outer = 1, name
        while outer in loops:
            outer, trips = loops[outer]
            runs *= trips
        for line in lines:
            yield line, runs


def count_hlo(text):
    """The collectives of compiled HLO and the bytes that a device sends in them."""
    number, sent = 0, 0.0
    for line, runs in runs_of_lines(text):
        match = COLLECTIVE.search(line)
        if not match:
            continue
        arrays = [BYTES[kind] * math.prod(map(int, filter(None, shape.split(","))))
                  for kind, shape in ARRAY.findall(match["types"])]
        # What starts a collective returns its operands too.
        size = sum(arrays[len(arrays) // 2:] if match["start"] else arrays)
        number += runs
        sent += runs * SENT[match["kind"]](size, group_size(line))
    return number, round(sent)


def count_xla(step, args, shardings, results):
    jitted = jax.jit(step, in_shardings=shardings, out_shardings=results)
    return count_hlo(jitted.lower(*args).compile().as_text())


def count_shardc(build, model, *flags):
    out = subprocess.run([build / "bin" / "shardc-compile", model, "--json", *flags],
                         check=True, capture_output=True, text=True).stdout
    collectives = json.loads(out)["collectives"]
    return (sum(each["runs"] for each in collectives),
            sum(each["wire_bytes"] for each in collectives))


def as_program(name):
    """A loss with its optimizer, or a step, and where its carried arrays are."""
    if name in goldens.STEPS:
        return goldens.get_step(list(goldens.STEPS).index(name), name)
    number = list(goldens.LOSSES).index(name)
    loss_fn, params, x, y, place = goldens.get_loss(number, name)
    _, optimizer = goldens.get_optimizers(number, name)

    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    return programs.Program(step, (params, optimizer.init(params)), x, y), place


def compare(build, name):
    program, place = as_program(name)
    step, args = goldens.as_function(program)
    args = jax.tree.map(np.asarray, args)
    shardings = goldens.get_shardings(program, place)
    everywhere = jax.sharding.NamedSharding(goldens.MESH, jax.sharding.PartitionSpec())
    carried = shardings[:len(program.carried)]
    model = goldens.GOLDEN / name / "model.mlir"
    mesh = "--mesh=data=2,model=4"
    return {"xla": count_xla(step, args, shardings, (*carried, everywhere)),
            "follow": count_shardc(build, model, mesh),
            "cheapest": count_shardc(build, model, mesh, "--partition=cheapest",
                                     "--objective=bytes")}


def main():
    build, more = pathlib.Path(sys.argv[1]), []
    for name in sys.argv[2:] or (*goldens.LOSSES, *goldens.STEPS):
        counts = compare(build, name)
        print(name, counts, flush=True)
        (goldens.GOLDEN / name / "communication.json").write_text(json.dumps(counts) + "\n")
        if counts["cheapest"][1] > counts["xla"][1]:
            more.append(name)
    if more:
        sys.exit(f"shardc sends more than XLA: {', '.join(more)}")


if __name__ == "__main__":
    main()
