#!/usr/bin/env python3
"""Wire bytes per device and step: JAX/XLA, --partition=follow and =cheapest.

    benchmarks/partition_bytes.py [--build=BUILD] [--jax=PYTHON]

The models are those of test/Pipelines/scenarios. The JAX column compiles the
same step from the same annotations on virtual CPU devices, reads the
collectives of the compiled HLO and prices them by the same formulas; it is
empty without --jax, a Python that has JAX.
"""

import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(HERE, "..", "test", "Pipelines", "scenarios")

# name: file, mesh, batch, sizes, specs of x, w1, b1, w2, b2 as lists per
# dimension; y is sharded as x's rows.
SMALL, LARGE = (16, 64, 8), (1024, 4096, 1024)
CASES = {
    "1 DP": ("01-data-parallel.mlir", {"d": 4}, 32, SMALL,
             ["d."], ["."], ["."], ["."], ["."]),
    "4 FSDP": ("04-fsdp.mlir", {"d": 4}, 4096, LARGE,
               ["d."], ["d."], ["d"], ["d."], ["d"]),
    "5 FSDP, B=1024": ("05-fsdp-small-batch.mlir", {"d": 4}, 1024, LARGE,
                       ["d."], ["d."], ["d"], ["d."], ["d"]),
    "6 TP": ("06-tensor-parallel.mlir", {"t": 4}, 32, SMALL,
             ["."], [".t"], ["t"], ["t."], ["."]),
    "7 DPxTP": ("07-data-and-tensor-parallel.mlir", {"d": 2, "t": 2}, 32, SMALL,
                ["d."], [".t"], ["t"], ["t."], ["."]),
    "8 FSDPxTP": ("08-fsdp-and-tensor-parallel.mlir", {"d": 2, "t": 2}, 32,
                  SMALL, ["d."], ["dt"], ["t"], ["td"], ["."]),
    "9 FSDPxTP {t,f}": ("09-fsdp-and-tensor-parallel-one-dimension.mlir",
                        {"f": 2, "t": 2}, 4096, LARGE,
                        ["f."], [".", "tf"], ["tf"], ["tf", "."], ["f"]),
    "9 FSDPxTP {f,t}": ("09-fsdp-and-tensor-parallel-one-dimension.mlir",
                        {"f": 2, "t": 2}, 4096, LARGE,
                        ["f."], [".", "ft"], ["ft"], ["ft", "."], ["f"]),
    "10 HSDP": ("10-hybrid-sharded.mlir", {"r": 2, "f": 2}, 4096, LARGE,
                ["rf", "."], ["f."], ["f"], ["f."], ["f"]),
    "11 row-sharded TP": ("11-row-sharded-activations.mlir", {"t": 4}, 4096,
                          LARGE, ["t."], [".t"], ["t"], ["t."], ["."]),
    "12 the same, B=256": ("12-row-sharded-activations-small-batch.mlir",
                           {"t": 4}, 256, LARGE,
                           ["t."], [".t"], ["t"], ["t."], ["."]),
    "16 half TP": ("16-half-tensor-parallel.mlir", {"t": 4}, 32, SMALL,
                   ["."], [".t"], ["."], ["."], ["."]),
}


def measure_shardc(build, name, mode):
    """The bytes that the communication report states for @train_step."""
    path = os.path.join(SCENARIOS, CASES[name][0])
    with open(path) as file:
        source = file.read()
    if name.endswith("{f,t}"):
        source = source.replace('"t", "f"', '"f", "t"')
    tool = os.path.join(build, "bin", "shardc-opt")
    ir = subprocess.run(
        [tool, "--compile-to=collectives", "--partition=" + mode, "--objective=bytes"],
        input=source, capture_output=True, text=True, check=True).stdout
    report = subprocess.run(
        [tool, "--shardc-report-communication", "-o", os.devnull],
        input=ir, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"wire bytes per device:\s*(\d+)", report).group(1))


def measure_jax():
    """Prints a JSON object of bytes by name; runs under a Python with JAX."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    import numpy

    def dims(spec, rank):
        """["dt"] or ["d", "."]: a string of axes per dimension."""
        if len(spec) == 1 and rank == 2:
            spec = list(spec[0]) if len(spec[0]) == 2 else [spec[0], "."]
        return PartitionSpec(*[None if axes == "." else tuple(axes)
                               for axes in spec])

    result = {}
    for name, (_, axes, batch, (d, h, o), *specs) in CASES.items():
        mesh = Mesh(numpy.array(jax.devices()).reshape(list(axes.values())),
                    list(axes))
        shapes = [(batch, d), (d, h), (h,), (h, o), (o,)]
        shardings = [NamedSharding(mesh, dims(spec, len(shape)))
                     for spec, shape in zip(specs, shapes)]
        scalar = NamedSharding(mesh, PartitionSpec())

        def step(x, y, params):
            def loss(params):
                w1, b1, w2, b2 = params
                out = jax.nn.relu(x @ w1 + b1) @ w2 + b2
                return jnp.mean((out - y) ** 2)
            value, grads = jax.value_and_grad(loss)(params)
            return value, [p - 0.01 * g for p, g in zip(params, grads)]

        args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        y = jax.ShapeDtypeStruct((batch, o), jnp.float32)
        compiled = jax.jit(
            step,
            in_shardings=(shardings[0], shardings[0], shardings[1:]),
            out_shardings=(scalar, shardings[1:]),
        ).lower(args[0], y, args[1:]).compile()
        result[name] = count_bytes(compiled.as_text())
    print(json.dumps(result))


def get_group_size(attributes):
    """The devices in a group, in any of the ways in which HLO says it."""
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", attributes):
        return int(match.group(1))
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", attributes):
        return len(match.group(1).split(","))
    if match := re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", attributes):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", match.group(1)))
        n = 1
        for axis in re.findall(r"'(\w+)'", match.group(2)):
            n *= int(sizes[axis])
        return n
    if "source_target_pairs" in attributes:
        return 2
    raise ValueError("unknown groups: " + attributes)


def count_bytes(hlo):
    """Bytes that a device sends in the collectives of compiled HLO."""
    total = 0
    pattern = re.compile(
        r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|"
        r"collective-permute)(?:-start)?\((.*)")
    for line in hlo.splitlines():
        match = pattern.search(line)
        if not match:
            continue
        shapes, kind, rest = match.groups()
        size = 0
        for dtype, text in re.findall(r"(f32|pred|s32|bf16)\[([\d,]*)\]", shapes):
            elements = 1
            for extent in filter(None, text.split(",")):
                elements *= int(extent)
            size += elements * {"f32": 4, "s32": 4, "bf16": 2, "pred": 1}[dtype]
        n = get_group_size(rest)
        # `size` is that of the result.
        total += {"all-reduce": 2 * (n - 1) * size / n,
                  "all-gather": (n - 1) * size / n,
                  "reduce-scatter": (n - 1) * size,
                  "all-to-all": (n - 1) * size / n,
                  "collective-permute": size}[kind]
    return round(total)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--jax", help="a Python that has JAX")
    parser.add_argument("--measure-jax", action="store_true",
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_jax:
        return measure_jax()
    jax = {}
    if arguments.jax:
        jax = json.loads(subprocess.run(
            [arguments.jax, os.path.abspath(__file__), "--measure-jax"],
            capture_output=True, text=True, check=True).stdout)
    print(f"{'scenario':<20} {'JAX/XLA':>10} {'follow':>10} {'cheapest':>10}")
    for name in CASES:
        row = [jax.get(name, "-"), measure_shardc(arguments.build, name, "follow"),
               measure_shardc(arguments.build, name, "cheapest")]
        print(f"{name:<20} " + " ".join(f"{value:>10}" for value in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
