"""A train step of JAX, called from Python: by jax.jit and by shardc.jax.jit.

V/bin/python benchmarks/jax_step.py [ROUNDS]

V has the module shardc (pip install ./python), jax and optax, as
scripts/check-python.sh leaves it in build/python/venv. The step is that of the
section "notebook" of run.sh: an MLP of 10-32-16-1 with Adam and a batch of 1024 rows,
in arrays of NumPy, over eight CPU devices, data parallel and FSDP over a mesh of 2x4. Both loops wait for
each step: several steps of eight devices in flight may stop JAX for ever. Rounds of
both take turns. "best" compares the rounds in which each side ran undisturbed;
"beyond the step" is the part of a call that the executor does not see.
"""

import json
import os
import statistics
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

SIZES, BATCH = (10, 32, 16, 1), 1024
OPTIMIZER = optax.adam(1e-3)


def loss_fn(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)


def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


def make_batch(rng):
    x = rng.standard_normal((BATCH, SIZES[0]), np.float32)
    return x, (x**2).sum(1, keepdims=True)


def make_step(strategy):
    """The jitted step, its first arguments, and their shardings."""
    shape, axes = ((8,), ("data",)) if strategy == "dp" else ((2, 4), ("replica", "data"))
    mesh = jax.make_mesh(shape, axes, axis_types=(AxisType.Auto,) * len(axes))
    rng = np.random.default_rng(0)
    params = [{"w": rng.standard_normal((n, m), np.float32) / np.float32(n**0.5), "b": np.zeros(m, np.float32)}
              for n, m in zip(SIZES, SIZES[1:])]  # fmt: skip

    def place(leaf):
        divides = strategy == "fsdp" and leaf.ndim and leaf.shape[0] % 4 == 0
        return NamedSharding(mesh, PartitionSpec("data") if divides else PartitionSpec())

    first = (params, OPTIMIZER.init(params), *make_batch(rng))
    rows = NamedSharding(mesh, PartitionSpec(axes))
    shardings = (*jax.tree.map(place, first[:2]), rows, rows)
    step = jax.jit(train_step, in_shardings=shardings, donate_argnums=(0, 1),
                   out_shardings=(*shardings[:2], NamedSharding(mesh, PartitionSpec())))  # fmt: skip
    return step, first, shardings


def loop(step, arguments, batches, steps):
    """Microseconds per step, and the arguments of the next one."""
    params, state = arguments
    begin = time.perf_counter()
    for number in range(steps):
        params, state, loss = step(params, state, *batches[number % len(batches)])
        loss.block_until_ready()
    return (time.perf_counter() - begin) / steps * 1e6, (params, state)


def measure_overhead(train, arguments, batches):
    """Microseconds of each call that do not belong to the executor's step."""
    params, state = arguments
    beyond = []
    for number in range(2000):
        begin = time.perf_counter()
        params, state, _ = train(params, state, *batches[number % len(batches)])
        beyond.append((time.perf_counter() - begin - train.seconds) * 1e6)
    return statistics.median(beyond)


def compare(strategy, rounds):
    step, first, shardings = make_step(strategy)
    begin = time.perf_counter()
    step.trace(*first).lower()
    lowering = time.perf_counter() - begin
    begin = time.perf_counter()
    import shardc.jax as sj

    train = sj.jit(step, *first)
    compiling = time.perf_counter() - begin
    batches = [make_batch(np.random.default_rng(seed)) for seed in range(16)]
    ours, theirs = first[:2], jax.device_put(first[:2], shardings[:2])
    _, ours = loop(train, ours, batches, 100)
    _, theirs = loop(step, theirs, batches, 10)
    times = {"shardc": [], "jax": []}
    for _ in range(rounds):
        taken, ours = loop(train, ours, batches, 1000)
        times["shardc"].append(taken)
        taken, theirs = loop(step, theirs, batches, 20)
        times["jax"].append(taken)
    found = {"strategy": strategy}
    for name, all in times.items():
        found[f"{name}_us"] = round(statistics.median(all), 1)
        found[f"{name}_us_best"] = round(min(all), 1)
    ratios = [b / a for a, b in zip(times["shardc"], times["jax"])]
    return found | {
        "ratio": round(statistics.median(ratios), 1),
        "ratio_best": round(min(times["jax"]) / min(times["shardc"]), 1),
        "beyond_the_step_us": round(measure_overhead(train, ours, batches), 1),
        "trace_and_lower_s": round(lowering, 2),
        "import_and_compile_s": round(compiling, 2),
    }


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    print(f"load {os.getloadavg()[0]:.1f}")
    for strategy in ("dp", "fsdp"):
        print(json.dumps(compare(strategy, rounds)))


if __name__ == "__main__":
    main()
