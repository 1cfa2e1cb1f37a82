"""A train step of JAX, called from Python: by jax.jit and by shardc.jax.jit.

V/bin/python benchmarks/jax_step.py [ROUNDS]

V has the module shardc (pip install ./python), jax and optax, as
scripts/check-python.sh leaves it in build/python/venv. The step is that of
a notebook: an MLP of 64-128-64-10 with Adam, a batch of 256 rows of NumPy,
FSDP over eight CPU devices. Both loops wait for each step: several steps of eight
devices in flight may stop JAX for ever. Rounds of both take turns. Prints medians over
the rounds; "beyond the step" is the part of a call that the executor does not see.
"""

import json
import os
import statistics
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

SIZES, BATCH, STEPS = (64, 128, 64, 10), 256, 200
OPTIMIZER = optax.adam(1e-3)


def loss_fn(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return -(jax.nn.one_hot(y, SIZES[-1]) * jax.nn.log_softmax(logits)).sum(-1).mean()


def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


def make_step():
    """The jitted step, its first arguments, and their shardings."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    rng = np.random.default_rng(0)
    params = [{"w": rng.standard_normal((n, m), np.float32) / np.float32(n**0.5), "b": np.zeros(m, np.float32)}
              for n, m in zip(SIZES, SIZES[1:])]  # fmt: skip
    first = (params, OPTIMIZER.init(params), rng.standard_normal((BATCH, SIZES[0]), np.float32),
             rng.integers(0, SIZES[-1], BATCH).astype(np.int32))  # fmt: skip

    def place(leaf):
        divides = leaf.ndim and leaf.shape[0] % 8 == 0
        return NamedSharding(mesh, PartitionSpec("data") if divides else PartitionSpec())

    shardings = jax.tree.map(place, first)
    step = jax.jit(train_step, in_shardings=shardings, donate_argnums=(0, 1),
                   out_shardings=(*shardings[:2], place(np.zeros(()))))  # fmt: skip
    return step, first, shardings


def loop(step, arguments, batches, steps=STEPS):
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


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    step, first, shardings = make_step()
    begin = time.perf_counter()
    step.trace(*first).lower()
    lowering = time.perf_counter() - begin
    begin = time.perf_counter()
    import shardc.jax as sj

    train = sj.jit(step, *first)
    compiling = time.perf_counter() - begin
    rng = np.random.default_rng(1)
    batches = [(rng.standard_normal((BATCH, SIZES[0]), np.float32),
                rng.integers(0, SIZES[-1], BATCH).astype(np.int32)) for _ in range(16)]  # fmt: skip
    ours, theirs = first[:2], jax.device_put(first[:2], shardings[:2])
    _, ours = loop(train, ours, batches, 20)
    _, theirs = loop(step, theirs, batches, 20)
    times = {"shardc": [], "jax": []}
    for _ in range(rounds):
        taken, ours = loop(train, ours, batches, 10 * STEPS)
        times["shardc"].append(taken)
        taken, theirs = loop(step, theirs, batches)
        times["jax"].append(taken)
    found = {f"{name}_us_per_step": round(statistics.median(all), 1) for name, all in times.items()}
    ratios = [b / a for a, b in zip(times["shardc"], times["jax"])]
    found |= {
        "ratio": round(statistics.median(ratios), 1),
        "ratio_least": round(min(ratios), 1),
        "beyond_the_step_us": round(measure_overhead(train, ours, batches), 1),
        "trace_and_lower_seconds": round(lowering, 2),
        "import_and_compile_seconds": round(compiling, 2),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
