"""JAX's side of benchmarks/goals and of scripts/gpu-check.sh: trains the same MLPs
on request.

Run by a Python that has JAX, with XLA_FLAGS set for the number of devices. With
the arguments ADDRESS, SIZE and RANK it is one of so many processes, which share
a mesh by gloo and get the same requests. One request per line of standard input,
answered by one line, a JSON object:

  model NAME JSON       makes a train step; JSON has layers, loss, optimizer,
                        batch, strategy, mesh and scan, the steps of one scan,
                        and may have precision: "tf32" for the factors of
                        GEMMs, "bf16" for all but parameters, loss and sums
  run NAME STEPS        so many steps, synchronised after each
  fed NAME STEPS        the same with a batch from the host for each step, sent
                        while the step before runs
  scan NAME STEPS       as `run`, in loops of jax.lax.scan
  epoch NAME DATADIR    reads the digits, runs one epoch of them and evaluates
  epoch NAME            the same without reading them again

Answers have "seconds" and "steps", or "error".
"""

import json
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

LEARNING_RATE = 1e-4
TRAIN_ROWS = 1437  # of the digits; the others are for evaluation


def specs(layers, strategy, sizes):
    """PartitionSpecs of the weight and bias of each layer, as shardc-gen has them.

    JAX shards evenly or not at all; a dimension that does not divide stays whole."""

    def fit(shape, names):
        return PartitionSpec(*(name if name and size % sizes[name] == 0 else None for size, name in zip(shape, names)))

    for i, shape in enumerate(zip(layers, layers[1:])):
        weight, bias = (None, None), (None,)
        if "tp" in strategy:
            weight, bias = ((None, "model"), ("model",)) if i % 2 == 0 else (("model", None), (None,))
        if "fsdp" in strategy:
            weight = tuple(name or "data" for name in weight)
        yield fit(shape, weight), fit(shape[1:], bias)


def place(array, sharding):
    """The array, which all processes have, on the devices of all of them."""
    if jax.process_count() == 1:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


class Model:
    def __init__(self, layers, loss, optimizer, batch, strategy, mesh, scan, precision="f32"):
        self.batch, self.loss, self.scan_steps = batch, loss, scan
        self.dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
        self.precision = "tensorfloat32" if precision == "tf32" else None
        axes = mesh or {"data": 1}
        count = int(np.prod(list(axes.values())))
        self.grid = Mesh(np.array(jax.devices()[:count]).reshape(list(axes.values())), list(axes))
        rows = PartitionSpec("data") if "data" in axes else PartitionSpec()
        self.rows = NamedSharding(self.grid, rows)
        random = np.random.default_rng(0)
        params = []
        for (weight, bias), (fan_in, out) in zip(specs(layers, strategy, axes), zip(layers, layers[1:])):
            values = (random.standard_normal((fan_in, out)) * (2 / fan_in) ** 0.5).astype(np.float32)
            params.append((self.put(values, weight), self.put(np.zeros(out, np.float32), bias)))
        zeros = lambda: jax.tree.map(lambda p: place(np.zeros(p.shape, np.float32), p.sharding), params)
        moments = (zeros(), zeros()) if optimizer == "adam" else ()
        self.state = (params, moments, self.put(np.zeros((), np.int32), PartitionSpec()))
        labels = (
            random.standard_normal((batch, layers[-1])).astype(np.float32)
            if loss == "mse"
            else random.integers(0, layers[-1], batch).astype(np.int32)
        )
        self.host_data = random.standard_normal((batch, layers[0])).astype(np.float32), labels
        self.data = self.feed(*self.host_data)
        self.shardings = jax.tree.map(lambda p: p.sharding, params)
        self.make_steps()

    def put(self, array, spec):
        return place(array, NamedSharding(self.grid, spec))

    def feed(self, x, y):
        return place(x, self.rows), place(y, self.rows)

    def forward(self, params, x):
        x = x.astype(self.dtype)
        for i, (w, b) in enumerate(params):
            x = jnp.matmul(x, w.astype(self.dtype), precision=self.precision) + b.astype(self.dtype)
            if i + 1 < len(params):
                x = jax.nn.relu(x)
        return x.astype(jnp.float32)

    def losses(self, z, y):
        if self.loss == "mse":
            return jnp.mean((z - y) ** 2, axis=1)
        return jax.nn.logsumexp(z, 1) - jnp.take_along_axis(z, y[:, None], 1)[:, 0]

    def update(self, params, moments, count, grads):
        keep = lambda tree: jax.tree.map(jax.lax.with_sharding_constraint, tree, self.shardings)
        if not moments:
            return keep(jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads)), ()
        first = keep(jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads))
        second = keep(jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], grads))
        scale, root = 1 - 0.9**count, 1 - 0.999**count
        change = lambda p, m, v: p - LEARNING_RATE * (m / scale) / (jnp.sqrt(v / root) + 1e-8)
        return keep(jax.tree.map(change, params, first, second)), (first, second)

    def make_steps(self):
        def step(state, data):
            params, moments, count = state
            x, y = data
            loss, grads = jax.value_and_grad(lambda p: jnp.mean(self.losses(self.forward(p, x), y)))(params)
            params, moments = self.update(params, moments, count + 1, grads)
            return (params, moments, count + 1), loss

        def many(state, data):
            return jax.lax.scan(lambda state, _: step(state, data), state, None, length=self.scan_steps)

        def evaluate(params, data):
            z = self.forward(params, data[0])
            return self.losses(z, data[1]), jnp.argmax(z, 1) == data[1]

        self.step = jax.jit(step, donate_argnums=0)
        self.many = jax.jit(many, donate_argnums=0)
        self.evaluate = jax.jit(evaluate)

    def run(self, steps):
        for _ in range(steps):
            self.state, loss = self.step(self.state, self.data)
            jax.block_until_ready((self.state, loss))
        return steps

    def fed(self, steps):
        following = self.feed(*self.host_data)
        for _ in range(steps):
            self.state, loss = self.step(self.state, following)
            following = self.feed(*self.host_data)
            jax.block_until_ready((self.state, loss))
        return steps

    def scan(self, steps):
        loops = -(-steps // self.scan_steps)
        for _ in range(loops):
            self.state, losses = self.many(self.state, self.data)
            jax.block_until_ready((self.state, losses))
        return loops * self.scan_steps

    def read(self, folder):
        with np.load(os.path.join(folder, "digits.npz")) as archive:
            self.x, self.y = archive["x"], archive["y"]

    def epoch(self):
        order = np.random.default_rng(1797).permutation(len(self.x))
        train, test = np.random.permutation(order[:TRAIN_ROWS]), order[TRAIN_ROWS:]
        steps, total = len(train) // self.batch, 0.0
        for step in range(steps):
            rows = train[step * self.batch : (step + 1) * self.batch]
            self.state, loss = self.step(self.state, self.feed(self.x[rows], self.y[rows]))
            total += float(loss)
        loss, correct = 0.0, 0
        for begin in range(0, len(test), self.batch):
            rows = test[begin : begin + self.batch]
            padded = np.pad(rows, (0, self.batch - len(rows)), mode="edge")
            losses, hits = self.evaluate(self.state[0], self.feed(self.x[padded], self.y[padded]))
            loss += float(np.sum(np.asarray(losses)[: len(rows)]))
            correct += int(np.sum(np.asarray(hits)[: len(rows)]))
        return steps


def answer(models, line):
    verb, name, *rest = line.split(" ", 2)
    if verb == "model":
        models[name] = Model(**json.loads(rest[0]))
        return {}
    model = models[name]
    start = time.perf_counter()
    if verb == "epoch":
        if rest:
            model.read(rest[0])
        steps = model.epoch()
    else:
        steps = getattr(model, verb)(int(rest[0]))
    return {"seconds": time.perf_counter() - start, "steps": steps}


def main():
    # Gloo prints to standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if len(sys.argv) == 4:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    models = {}
    for line in sys.stdin:
        try:
            reply = answer(models, line.rstrip("\n"))
        except Exception as error:  # the other side prints it beside the line
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
