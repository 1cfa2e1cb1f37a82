"""Random numbers of JAX inside of losses and steps."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import losses

SHAPE = (16, 24)


def _drop(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def _params(rng):
    return losses.mlp_parameters(rng, (16, 32, 8))


def _forward(params, x, key):
    *hidden, last = params.values()
    h = x
    for number, layer in enumerate(hidden):
        h = jax.nn.relu(h @ layer["w"] + layer["b"])
        h = _drop(jax.random.fold_in(key, number), h, 0.25)
    return h @ last["w"] + last["b"]


def dropout(rng):
    """The same mask in each step, as the key is the same."""

    def loss(params, x, y):
        return jnp.mean((_forward(params, x, jax.random.key(3)) - y) ** 2)

    return loss, _params(rng), losses.normal(rng, losses.ROWS, 16), \
        losses.normal(rng, losses.ROWS, 8)


def dropout_step(rng):
    """A mask of its own in each step."""
    _, params, x, y = dropout(rng)
    optimizer = optax.adam(1e-2)

    def step(params, state, x, y):
        count, state = state
        key = jax.random.fold_in(jax.random.key(11), count)
        loss, gradients = jax.value_and_grad(
            lambda params: jnp.mean((_forward(params, x, key) - y) ** 2))(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), (count + 1, state), loss

    return step, params, (jnp.zeros((), jnp.uint32), optimizer.init(params)), x, y


def _draws(draw):
    """A step whose parameters are the numbers of a key of the step."""

    def build(rng):
        names = draw(jax.random.key(0))
        params = {name: np.zeros(value.shape, np.float32) for name, value in names.items()}

        def step(params, count, x, y):
            new = draw(jax.random.fold_in(jax.random.key(42), count))
            params = {name: jnp.where(count < 0, old, new[name].astype(jnp.float32))
                      for name, old in params.items()}
            return params, count + 1, jnp.maximum(jnp.max(x), jnp.max(y))

        return step, params, jnp.zeros((), jnp.int32), \
            losses.normal(rng, losses.ROWS, 16), losses.normal(rng, losses.ROWS, 8)

    return build


def _exact(key):
    """Made of bits and of arithmetic that rounds once."""
    keys = jax.random.split(key, 8)
    return {
        "uniform": jax.random.uniform(keys[0], SHAPE),
        "between": jax.random.uniform(keys[1], SHAPE, minval=-2.0, maxval=2.0),
        "bernoulli": jax.random.bernoulli(keys[2], 0.3, SHAPE),
        "randint": jax.random.randint(keys[3], SHAPE, -5, 1000),
        "bits": jax.random.bits(keys[4], SHAPE),
        "vector": jax.random.uniform(keys[5], (7,)),
        "chosen": jax.random.rademacher(keys[6], SHAPE),
        "old_key": jax.random.uniform(jax.random.PRNGKey(17), SHAPE),
    }


def _unsigned(key):
    """Ops on unsigned integers and on bits, of numbers that use them all."""
    first, second, third = jax.random.split(key, 3)
    u, v = jax.random.bits(first, SHAPE), jax.random.bits(second, SHAPE)
    x = jax.random.uniform(third, SHAPE, minval=-1.0, maxval=1.0)
    far = v % 40
    low = lambda bits: bits & 0xffffff  # exact as a float
    return {
        "quotient": low(u // (v >> 20 | 1)), "remainder": low(u % (v >> 3 | 1)),
        "less": u < v, "at_least": u >= v, "larger": low(jnp.maximum(u, v)),
        "smaller": low(jnp.minimum(u, v)),
        "clipped": low(jnp.clip(u, 1000, np.uint32(3000000000))),
        "left": low(u << far), "right": low(u >> far),
        "signed": low(u.astype(jnp.int32) >> far.astype(jnp.int32)),
        "inverse": low(~u), "both": low(u & v ^ 5), "product": low(u * v - v),
        "rounded": u.astype(jnp.float32), "truncated": low((x * x * 4e9).astype(jnp.uint32)),
        "bits": low(jax.lax.bitcast_convert_type(x, jnp.uint32)),
        "next": jax.lax.nextafter(x, jnp.float32(0.25)),
        "smallest": jax.lax.nextafter(jnp.zeros(SHAPE), x),
        "sum": low(jnp.sum(u, axis=0)),
    }


def _rounded(key):
    """By way of erf_inv, logarithms and cosines."""
    keys = jax.random.split(key, 8)
    initializers = jax.nn.initializers
    return {
        "normal": jax.random.normal(keys[0], SHAPE),
        "truncated": jax.random.truncated_normal(keys[1], -2.0, 2.0, SHAPE),
        "he": initializers.he_normal()(keys[2], SHAPE),
        "glorot": initializers.glorot_uniform()(keys[3], SHAPE),
        "lecun": initializers.lecun_normal()(keys[4], SHAPE),
        "exponential": jax.random.exponential(keys[5], SHAPE),
        "gumbel": jax.random.gumbel(keys[6], SHAPE),
        "laplace": jax.random.laplace(keys[7], SHAPE),
    }


LOSSES = {"dropout": dropout}
STEPS = {"step_dropout": dropout_step, "step_random": _draws(_exact),
         "step_unsigned": _draws(_unsigned),
         "step_initializers": _draws(_rounded)}
