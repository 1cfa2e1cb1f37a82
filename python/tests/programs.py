"""First programs as people write them with JAX and its libraries.

LOSSES are as those of losses.py. Each function of STEPS gives a Program for a
generator of random numbers."""

import dataclasses

import equinox as eqx
import flax.linen
import flax.training.train_state
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

import losses
import steps


@dataclasses.dataclass
class Program:
    """step(*carried, x, y, *constants) -> *new carried, loss or a dict of metrics."""

    step: object
    carried: tuple
    x: object
    y: object
    constants: tuple = ()


# Losses.

def concatenated(rng):
    """Dense connections: each layer sees all layers before."""
    def loss(params, x, y):
        h = x
        for layer in params["hidden"]:
            h = jnp.concatenate([h, jax.nn.relu(h @ layer["w"] + layer["b"])], axis=-1)
        return jnp.mean((h @ params["out"]["w"] + params["out"]["b"] - y) ** 2)

    params = {"hidden": [losses.dense(rng, 16, 8), losses.dense(rng, 24, 8)],
              "out": losses.dense(rng, 32, 8)}
    return loss, params, losses.normal(rng, losses.ROWS, 16), losses.normal(rng, losses.ROWS, 8)


def fourier_features(rng):
    """Sines and cosines of the inputs, beside these."""
    def loss(params, x, y):
        frequencies = 2.0 ** jnp.arange(3)
        angles = (x[:, :, None] * frequencies).reshape(x.shape[0], -1)
        h = jnp.concatenate([x, jnp.sin(angles), jnp.cos(angles)], axis=1)
        return jnp.mean((losses.mlp(params, h, jax.nn.gelu) - y) ** 2)

    return (loss, losses.mlp_parameters(rng, (28, 32, 8)), losses.normal(rng, losses.ROWS, 4),
            losses.normal(rng, losses.ROWS, 8))


def attention(rng):
    """A block of a transformer over eight tokens, with the mean of their outputs."""
    def norm(x, scale):
        x = x - jnp.mean(x, -1, keepdims=True)
        return scale * x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)

    def loss(params, x, y):
        h = params["tokens"][x] + params["places"]
        q, k, v = jnp.split(norm(h, params["scale"]) @ params["qkv"], 3, axis=-1)
        heads = lambda t: t.reshape(*t.shape[:2], 2, 8)
        scores = jnp.einsum("bthd,bshd->bhts", heads(q), heads(k)) / jnp.sqrt(8.0)
        past = jnp.tril(jnp.ones((8, 8), bool))
        weights = jax.nn.softmax(jnp.where(past, scores, -1e9))
        mixed = jnp.einsum("bhts,bshd->bthd", weights, heads(v)).reshape(h.shape)
        h = h + mixed @ params["out"]
        return losses.optax_integer(h.mean(axis=1) @ params["head"], y)

    params = {"tokens": losses.normal(rng, 24, 16) / 2, "places": losses.normal(rng, 8, 16) / 4,
              "scale": np.ones(16, np.float32), "qkv": losses.normal(rng, 16, 48) / 4,
              "out": losses.normal(rng, 16, 16) / 4, "head": losses.normal(rng, 16, 8) / 4}
    return (loss, params, rng.integers(0, 24, (losses.ROWS, 8)).astype(np.int32),
            rng.integers(0, 8, losses.ROWS).astype(np.int32))


def bag_of_words(rng):
    """The mean of the embeddings of a text, padded with -1."""
    def loss(params, x, y):
        known = (x >= 0)[..., None]
        h = jnp.sum(jnp.where(known, params["table"][jnp.maximum(x, 0)], 0), axis=1)
        h = h / jnp.maximum(jnp.sum(known, axis=1), 1)
        return losses.picked(losses.mlp(params["mlp"], h, jnp.tanh), y)

    params = {"table": losses.normal(rng, 32, 16), "mlp": losses.mlp_parameters(rng, (16, 16, 8))}
    return (loss, params, rng.integers(-1, 32, (losses.ROWS, 6)).astype(np.int32),
            rng.integers(0, 8, losses.ROWS).astype(np.int32))


def contrastive(rng):
    """Pairs of one batch against each other."""
    def loss(params, x, y):
        unit = lambda v: v / jnp.linalg.norm(v, axis=-1, keepdims=True)
        scores = unit(x @ params["left"]) @ unit(y @ params["right"]).T / 0.5
        return losses.optax_integer(scores, jnp.arange(scores.shape[0]))

    params = {"left": losses.normal(rng, 16, 8) / 4, "right": losses.normal(rng, 8, 8) / 3}
    return loss, params, losses.normal(rng, losses.ROWS, 16), losses.normal(rng, losses.ROWS, 8)


def quantiles(rng):
    """Several quantiles at once, in order by a cumulative sum."""
    def loss(params, x, y):
        out = losses.mlp(params, x, jax.nn.elu)
        levels = jnp.linspace(0.1, 0.9, out.shape[1])
        error = y - jnp.cumsum(jax.nn.softplus(out), axis=1)
        return jnp.mean(jnp.maximum(levels * error, (levels - 1) * error))

    return (loss, losses.mlp_parameters(rng, (16, 32, 8)), losses.normal(rng, losses.ROWS, 16),
            losses.normal(rng, losses.ROWS, 1))


def branches(rng):
    """lax.cond on a value of the batch."""
    def loss(params, x, y):
        error = losses.mlp(params, x, jnp.tanh) - y
        return jax.lax.cond(jnp.mean(jnp.abs(error)) > 1, lambda e: jnp.mean(jnp.abs(e)),
                            lambda e: jnp.mean(e ** 2), error)

    return (loss, losses.mlp_parameters(rng, (16, 32, 8)), losses.normal(rng, losses.ROWS, 16),
            losses.normal(rng, losses.ROWS, 8))


def linen_loss(rng):
    """A module of Flax Linen."""
    class Model(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            x = flax.linen.LayerNorm()(flax.linen.gelu(flax.linen.Dense(32)(x)))
            return flax.linen.Dense(8)(x)

    model = Model()
    x = losses.normal(rng, losses.ROWS, 16)
    params = model.init(jax.random.key(0), x)["params"]
    return (lambda params, x, y: jnp.mean((model.apply({"params": params}, x) - y) ** 2),
            params, x, losses.normal(rng, losses.ROWS, 8))


LOSSES = {
    "concatenated": concatenated,
    "fourier_features": fourier_features,
    "attention": attention,
    "bag_of_words": bag_of_words,
    "contrastive": contrastive,
    "quantiles": quantiles,
    "branches": branches,
    "linen_loss": linen_loss,
}


# Steps.

def with_optax(optimizer, case=steps.MSE):
    def build(rng):
        step, params, state, x, y = steps.with_optax(optimizer, case)(rng)
        return Program(step, (params, state), x, y)

    return build


def accuracy(rng):
    """Metrics beside the loss."""
    loss_fn, params, x, y = losses.classifier(losses.optax_integer)(rng)
    optimizer = optax.adam(1e-2)

    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        right = jnp.argmax(losses.mlp(params, x, jax.nn.relu), axis=-1) == y
        metrics = {"accuracy": jnp.mean(right), "correct": jnp.sum(right), "loss": loss,
                   "norm": optax.global_norm(gradients)}
        return optax.apply_updates(params, updates), state, metrics

    return Program(step, (params, optimizer.init(params)), x, y)


def ema(rng):
    """A moving average of the parameters, carried along."""
    loss_fn, params, x, y = steps.MSE(rng)

    def step(params, average, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)
        return params, optax.incremental_update(params, average, 0.1), loss

    return Program(step, (params, params), x, y)


def unsigned_counter(rng):
    """A counter without sign, a learning rate and weights of the inputs as arguments."""
    loss_fn, params, x, y = steps.MSE(rng)

    def step(params, count, x, y, rate, weights):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x * weights, y)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), count + 1, loss

    return Program(step, (params, np.uint32(0)), x, y,
                   (np.float32(0.05), np.linspace(0.5, 1, 16, dtype=np.float32)))


def resident(rng):
    """The whole data set as arguments; a counter says which rows are the batch."""
    loss_fn, params, x, y = losses.classifier(losses.picked)(rng)

    def step(params, count, x, y):
        rows = lambda data: jax.lax.dynamic_slice_in_dim(data, count % 3 * 32, 32)
        loss, gradients = jax.value_and_grad(loss_fn)(params, rows(x), rows(y))
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), count + 1, loss

    # Every step is fed all rows.
    triple = lambda data: np.concatenate([data[:losses.BATCH]] * 3)
    return Program(step, (params, np.int32(0)), triple(x), triple(y))


def microbatches(rng):
    """Gradients added up by lax.scan over four microbatches."""
    loss_fn, params, x, y = steps.MSE(rng)
    optimizer = optax.adam(1e-2)

    def step(params, state, x, y):
        def add(total, batch):
            return jax.tree.map(jnp.add, total,
                                jax.value_and_grad(loss_fn)(params, *batch)), None

        parts = jax.tree.map(lambda a: a.reshape(4, -1, *a.shape[1:]), (x, y))
        zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        total, _ = jax.lax.scan(add, zero, parts)
        loss, gradients = jax.tree.map(lambda t: t / 4, total)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    return Program(step, (params, optimizer.init(params)), x, y)


def microbatch_slices(rng):
    """Gradients added up by lax.fori_loop over slices of the batch."""
    loss_fn, params, x, y = steps.MSE(rng)
    size = losses.BATCH // 4

    def step(params, state, x, y):
        def add(index, total):
            batch = (jax.lax.dynamic_slice_in_dim(a, index * size, size) for a in (x, y))
            return jax.tree.map(lambda t, g: t + g / 4, total,
                                jax.value_and_grad(loss_fn)(params, *batch))

        zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        loss, gradients = jax.lax.fori_loop(0, 4, add, zero)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), state + 1, loss

    return Program(step, (params, np.int32(0)), x, y)


def microbatch_dropout(rng):
    """Microbatches that draw numbers of their own, and give their losses."""
    _, params, x, y = steps.MSE(rng)

    def loss_fn(params, key, x, y):
        *layers, last = params.values()
        for number, layer in enumerate(layers):
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
            x *= jax.random.bernoulli(jax.random.fold_in(key, number), 0.8, x.shape) / 0.8
        return jnp.mean((x @ last["w"] + last["b"] - y) ** 2)

    def step(params, count, x, y):
        key = jax.random.fold_in(jax.random.key(7), count)

        def add(total, batch):
            number, x, y = batch
            loss, gradients = jax.value_and_grad(loss_fn)(
                params, jax.random.fold_in(key, number), x, y)
            return jax.tree.map(jnp.add, total, gradients), loss

        parts = jax.tree.map(lambda a: a.reshape(4, -1, *a.shape[1:]), (x, y))
        gradients, found = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params),
                                        (jnp.arange(4), *parts))
        return (jax.tree.map(lambda p, g: p - 0.05 * g / 4, params, gradients), count + 1,
                jnp.mean(found))

    return Program(step, (params, np.int32(0)), x, y)


def constrained(rng):
    """The hidden layers sharded over "model", by a constraint."""
    mesh = jax.make_mesh((2, 4), ("data", "model"),
                         axis_types=(jax.sharding.AxisType.Auto,) * 2)
    hidden = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data", "model"))

    def loss(params, x, y):
        *layers, last = params.values()
        for layer in layers:
            x = jax.lax.with_sharding_constraint(
                jax.nn.gelu(x @ layer["w"] + layer["b"]), hidden)
        return jnp.mean((x @ last["w"] + last["b"] - y) ** 2)

    _, *rest = steps.MSE(rng)
    return with_optax(optax.adam(1e-2), lambda rng: (loss, *rest))(rng)


def linen_state(rng):
    """A TrainState of Flax: parameters, states and counter in one argument."""
    class Model(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            return flax.linen.Dense(8)(flax.linen.relu(flax.linen.Dense(32)(x)))

    model = Model()
    x, y = losses.normal(rng, losses.ROWS, 16), rng.integers(0, 8, losses.ROWS).astype(np.int32)
    state = flax.training.train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(0), x)["params"],
        tx=optax.adamw(1e-2))

    def step(state, x, y):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits

        (loss, logits), gradients = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        accuracy = jnp.mean(jnp.argmax(logits, -1) == y)
        return state.apply_gradients(grads=gradients), {"loss": loss, "accuracy": accuracy}

    return Program(step, (state,), x, y)


def nnx_step(rng):
    """nnx.jit, which changes a model and its optimizer."""
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(16, 32, rngs=rngs)
            self.out = nnx.Linear(32, 8, rngs=rngs)

        def __call__(self, x):
            return self.out(nnx.relu(self.hidden(x)))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return loss

    return Program(step, (model, optimizer), losses.normal(rng, losses.ROWS, 16),
                   losses.normal(rng, losses.ROWS, 8))


def equinox_step(rng):
    """eqx.filter_jit of a model with functions among its leaves."""
    model = eqx.nn.MLP(16, 8, 32, 2, activation=jax.nn.gelu, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit
    def step(model, state, x, y):
        loss_fn = lambda model: jnp.mean((jax.vmap(model)(x) - y) ** 2)
        loss, gradients = eqx.filter_value_and_grad(loss_fn)(model)
        updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state, loss

    state = optimizer.init(eqx.filter(model, eqx.is_array))
    return Program(step, (model, state), losses.normal(rng, losses.ROWS, 16),
                   losses.normal(rng, losses.ROWS, 8))


def tutorial(rng):
    """The MLP of JAX's tutorials: pairs of weights in a list, logits minus their
    logsumexp, one-hot targets."""
    sizes = (16, 32, 32, 8)
    params = [(losses.normal(rng, m, n) / 4, losses.normal(rng, n) / 8)
              for m, n in zip(sizes, sizes[1:])]

    def predict(params, image):
        activations = image
        for w, b in params[:-1]:
            activations = jax.nn.relu(jnp.dot(activations, w) + b)
        logits = jnp.dot(activations, params[-1][0]) + params[-1][1]
        return logits - jax.nn.logsumexp(logits)

    def loss(params, images, targets):
        predictions = jax.vmap(predict, in_axes=(None, 0))(params, images)
        return -jnp.mean(predictions * targets)

    def update(params, count, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, jax.nn.one_hot(y, 8))
        params = [(w - 0.1 * dw, b - 0.1 * db)
                  for (w, b), (dw, db) in zip(params, gradients)]
        return params, count + 1, value

    return Program(update, (params, np.int32(0)), losses.normal(rng, losses.ROWS, 16),
                   rng.integers(0, 8, losses.ROWS).astype(np.int32))


def recurrent(rng):
    """A recurrent network, by lax.scan over a sequence."""
    params = {"hidden": losses.normal(rng, 32, 32) / 8, "inputs": losses.normal(rng, 4, 32) / 2,
              "out": losses.normal(rng, 32, 8) / 6}

    def loss(params, x, y):
        def cell(h, x):
            return jnp.tanh(h @ params["hidden"] + x @ params["inputs"]), None

        h, _ = jax.lax.scan(cell, jnp.zeros((len(x), 32)), jnp.swapaxes(x, 0, 1))
        return jnp.mean((h @ params["out"] - y) ** 2)

    return loss, params, losses.normal(rng, losses.ROWS, 6, 4), losses.normal(rng, losses.ROWS, 8)


def carried_key(rng):
    """A key that each step splits, and dropout by it."""
    _, params, x, y = steps.MSE(rng)

    def step(params, key, x, y):
        key, own = jax.random.split(key)

        def loss_fn(params):
            *layers, last = params.values()
            hidden = x
            for number, layer in enumerate(layers):
                hidden = jax.nn.relu(hidden @ layer["w"] + layer["b"])
                keep = jax.random.bernoulli(jax.random.fold_in(own, number), 0.8, hidden.shape)
                hidden = jnp.where(keep, hidden / 0.8, 0)
            return jnp.mean((hidden @ last["w"] + last["b"] - y) ** 2)

        loss, gradients = jax.value_and_grad(loss_fn)(params)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients), key, loss

    return Program(step, (params, np.asarray(jax.random.PRNGKey(5))), x, y)


def sorted_by_two(rng):
    """Rows in the order of a class, and of a score within each."""
    _, params, x, y = steps.MSE(rng)

    def loss(params, x, y):
        *layers, last = params.values()
        for layer in layers:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        out = x @ last["w"] + last["b"]
        group = jnp.floor(2 * y)
        _, _, ranked = jax.lax.sort((group, -out, out), dimension=1, num_keys=2)
        return jnp.mean((ranked * jnp.arange(1.0, 1 + out.shape[1]) - y) ** 2)

    return loss, params, x, y


def is_matrix(params):
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)


def by_kind(params):
    return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key, params)


STEPS = {
    "step_accuracy": accuracy,
    "step_ema": ema,
    "step_arguments": unsigned_counter,
    "step_resident": resident,
    "step_microbatches": microbatches,
    "step_constrained": constrained,
    "step_linen": linen_state,
    "step_nnx": nnx_step,
    "step_equinox": equinox_step,
    "step_tutorial": tutorial,
    "step_lookup": with_optax(optax.adam(1e-2), losses.embedding),
    "step_attention": with_optax(optax.adamw(1e-2), attention),
    "step_scanned": with_optax(optax.adam(1e-2), losses.scanned),
    "step_checkpointed": with_optax(optax.sgd(0.05), losses.checkpointed),
    "step_multi": with_optax(optax.MultiSteps(optax.adam(1e-2), 2)),
    "step_finite": with_optax(optax.apply_if_finite(optax.adam(1e-2), 3)),
    "step_masked": with_optax(optax.adamw(1e-2, mask=is_matrix)),
    "step_partition": with_optax(optax.partition(
        {"w": optax.adam(1e-2), "b": optax.sgd(1e-2)}, by_kind)),
    "step_injected": with_optax(optax.inject_hyperparams(optax.adam)(1e-2)),
    "step_warmup": with_optax(optax.sgd(
        optax.warmup_cosine_decay_schedule(0.01, 0.1, 2, 10), momentum=0.9)),
    "step_staircase": with_optax(optax.sgd(
        optax.exponential_decay(0.1, 2, 0.5, staircase=True))),
    "step_polynomial": with_optax(optax.sgd(optax.polynomial_schedule(0.1, 1e-3, 2.5, 10))),
    "step_adaptive_clip": with_optax(optax.chain(
        optax.adaptive_grad_clip(1e-2), optax.sgd(1.0))),
    "step_lamb": with_optax(optax.lamb(1e-2)),
    "step_adafactor": with_optax(optax.adafactor(1e-2)),
    "step_radam": with_optax(optax.radam(1e-2)),
    "step_yogi": with_optax(optax.yogi(1e-2)),
    "step_schedule_free": with_optax(optax.contrib.schedule_free_sgd(0.1)),
    "step_microbatch_slices": microbatch_slices,
    "step_microbatch_dropout": microbatch_dropout,
    "step_recurrent": with_optax(optax.rmsprop(1e-3), recurrent),
    "step_key": carried_key,
    "step_sorted": with_optax(optax.adam(1e-2), sorted_by_two),
}
