#!/usr/bin/env python3
"""Times shardc's train step, and JAX's where it is installed, in one run.

  benchmarks/run.py [--bin build/bin] [--jax PYTHON] [--steps N]

Three workloads on eight virtual CPU devices and on one: a 10-32-16-1 MLP with
batch 1024, 784-1024-1024-10 with batch 128, 1024-4096-1024 with batch 1024. JAX
runs in the Python given (default: this one) and simulates eight devices as well.
Prints milliseconds per step (the median over steps) and their ratios.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

# name, layers, loss, batch, steps, [(strategy, mesh)]
WORKLOADS = [
    ("notebook 10-32-16-1, batch 1024", [10, 32, 16, 1], "mse", 1024, 400,
     [("none", ""), ("dp", "data=8"), ("fsdp+tp", "data=4,model=2")]),
    ("784-1024-1024-10, batch 128", [784, 1024, 1024, 10], "softmax_cross_entropy", 128, 20,
     [("none", ""), ("dp", "data=8"), ("fsdp+tp", "data=2,model=4")]),
    ("1024-4096-1024, batch 1024", [1024, 4096, 1024], "mse", 1024, 4,
     [("none", ""), ("dp", "data=8")]),
]  # fmt: skip

JAX_PROGRAM = r"""
import json, os, statistics, sys, time
layers, loss, batch, steps, strategy, mesh = json.loads(sys.argv[1])
devices = 8 if mesh else 1
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
axes = [entry.split("=") for entry in mesh.split(",")] if mesh else [("data", "1")]
grid = Mesh(np.array(jax.devices()).reshape([int(size) for _, size in axes]), [name for name, _ in axes])
def put(array, *spec):
    return jax.device_put(array, NamedSharding(grid, P(*spec)))
rng = np.random.default_rng(0)
params = []
for i, (fan_in, out) in enumerate(zip(layers, layers[1:])):
    weight, bias = (P(), P())
    if strategy == "fsdp+tp":
        weight = P("data", "model") if i % 2 == 0 else P("model", "data")
        bias = P("model") if i % 2 == 0 else P()
        sizes = dict((name, int(size)) for name, size in axes)
        if any(name and d % sizes[name] for name, d in zip(weight, (fan_in, out))):
            weight = P(*(name if name and d % sizes[name] == 0 else None for name, d in zip(weight, (fan_in, out))))
        if bias and out % sizes["model"]:
            bias = P()
    params.append((put((rng.standard_normal((fan_in, out)) * (2 / fan_in) ** 0.5).astype(np.float32), *weight),
                   put(np.zeros(out, np.float32), *bias)))
x = put(rng.standard_normal((batch, layers[0])).astype(np.float32), "data")
if loss == "mse":
    y = put(rng.standard_normal((batch, layers[-1])).astype(np.float32), "data")
else:
    y = put(rng.integers(0, layers[-1], batch).astype(np.int32), "data")
def value(params, x, y):
    for i, (w, b) in enumerate(params):
        x = x @ w + b
        if i + 1 < len(params):
            x = jax.nn.relu(x)
    if loss == "mse":
        return jnp.mean((x - y) ** 2)
    return jnp.mean(jax.nn.logsumexp(x, 1) - jnp.take_along_axis(x, y[:, None], 1)[:, 0])
shardings = jax.tree.map(lambda p: p.sharding, params)
@jax.jit
def step(params, x, y):
    l, g = jax.value_and_grad(value)(params, x, y)
    params = jax.tree.map(lambda p, d, s: jax.lax.with_sharding_constraint(p - 0.01 * d, s), params, g, shardings)
    return params, l
times = []
for i in range(steps + 3):
    start = time.perf_counter()
    params, l = step(params, x, y)
    jax.block_until_ready((params, l))
    times.append(time.perf_counter() - start)
print(json.dumps(statistics.median(times[3:]) * 1e3))
"""


def write_npy(archive, name, descr, shape, payload):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{s},' for s in shape)}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + payload)


def write_data(path, layers, loss, batch):
    """Two batches; speed does not depend on the values."""
    rows, values = 2 * batch, [0.5, -1.0, 0.25, 1.5, -0.75, 0.125, -0.5]

    def floats(count):
        pattern = struct.pack("<7f", *values)
        return (pattern * (count // 7 + 1))[: 4 * count]

    with zipfile.ZipFile(path, "w") as archive:
        write_npy(archive, "x", "<f4", (rows, layers[0]), floats(rows * layers[0]))
        if loss == "mse":
            write_npy(archive, "y", "<f4", (rows, layers[-1]), floats(rows * layers[-1]))
        else:
            labels = [i % layers[-1] for i in range(rows)]
            write_npy(archive, "y", "<i4", (rows,), struct.pack(f"<{rows}i", *labels))


def time_shardc(arguments, workload, strategy, mesh, folder):
    _, layers, loss, batch, steps, _ = workload
    model, data, metrics = (os.path.join(folder, name) for name in ("m.mlir", "d.npz", "m.jsonl"))
    write_data(data, layers, loss, batch)
    gen = [f"{arguments.bin}/shardc-gen", f"--layers={','.join(map(str, layers))}", f"--loss={loss}",
           f"--strategy={strategy}", f"--batch-size={batch}", "--learning-rate=0.0001", "-o", model]  # fmt: skip
    subprocess.run(gen + ([f"--mesh={mesh}"] if mesh else []), check=True)
    steps = arguments.steps or steps
    run = [f"{arguments.bin}/shardc-run", model, f"--data={data}", f"--steps={steps + 3}", f"--metrics={metrics}",
           "--log-every=0", f"--epochs={steps + 3}"]  # fmt: skip
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    with open(metrics) as lines:
        times = [json.loads(line)["step_time_ms"] for line in lines]
    return statistics.median(times[3:])


def time_jax(arguments, workload, strategy, mesh):
    _, layers, loss, batch, steps, _ = workload
    case = json.dumps([layers, loss, batch, arguments.steps or steps, strategy, mesh])
    done = subprocess.run([arguments.jax, "-c", JAX_PROGRAM, case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return json.loads(done.stdout)


def time_compilation(arguments, folder):
    model, plan = os.path.join(folder, "c.mlir"), os.path.join(folder, "c.shardc")
    subprocess.run([f"{arguments.bin}/shardc-gen", "--layers=10,32,16,1", "--strategy=fsdp+tp", "--mesh=data=4,model=2",
                    "--batch-size=1024", "-o", model], check=True)  # fmt: skip
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([f"{arguments.bin}/shardc-compile", model, "-o", plan], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="where shardc's programs are")
    parser.add_argument("--jax", default=sys.executable, help="a Python that has JAX")
    parser.add_argument("--steps", type=int, default=0, help="steps to time, instead of each workload's own number")
    arguments = parser.parse_args()
    probe = subprocess.run([arguments.jax, "-c", "import jax; print(jax.__version__)"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    has_jax = probe.returncode == 0
    if has_jax:
        print(f"JAX {probe.stdout.strip()}, {os.cpu_count()} cores")
    else:
        print(f"JAX is not installed for {arguments.jax}: only shardc is timed. {os.cpu_count()} cores")
    print(f"{'workload':34} {'strategy':8} {'mesh':16} {'shardc ms':>10} {'JAX ms':>10} {'JAX/shardc':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for workload in WORKLOADS:
            for strategy, mesh in workload[-1]:
                ours = time_shardc(arguments, workload, strategy, mesh, folder)
                theirs = time_jax(arguments, workload, strategy, mesh) if has_jax else None
                print(f"{workload[0]:34} {strategy:8} {mesh or 'one device':16} {ours:10.3f} "
                      + (f"{theirs:10.3f} {theirs / ours:9.1f}x" if theirs else f"{'-':>10} {'-':>10}"), flush=True)  # fmt: skip
        print(f"compiling the notebook model, all phases: {time_compilation(arguments, folder):.3f} s")


if __name__ == "__main__":
    main()
