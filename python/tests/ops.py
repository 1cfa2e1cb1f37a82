"""Ops of JAX, each with a parameter of its own, for their values and gradients.

The loss adds sum(op(p) * q) for each: the gradient of q is the value of the op, and
that of p its gradient. After one step at rate 1 the parameters show both."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import losses

SIZE = 8


def positive(function):
    return lambda p, i: function(jnp.abs(p) + 0.3, i)


# Functions of a parameter [8, 8] and of indices [8], which are data.
OPS = {
    "slice": lambda p, i: p[1:7, 2:5],
    "slice_strided": lambda p, i: p[1::2, ::3],
    "slice_row": lambda p, i: p[3] * p[-1],
    "reverse": lambda p, i: p[:, ::-1],
    "pad": lambda p, i: jnp.pad(p, ((1, 2), (0, 3)), constant_values=1.5),
    "pad_interior": lambda p, i: lax.pad(p, 0.5, [(1, 0, 2), (0, 2, 1)]),
    "pad_negative": lambda p, i: lax.pad(p, -1.0, [(-1, 2, 0), (3, -2, 1)]),
    "concatenate": lambda p, i: jnp.concatenate([p, jnp.sin(p[:, :3]), p], axis=1),
    "stack": lambda p, i: jnp.stack([p, 2 * p, p * p], axis=1),
    "split": lambda p, i: sum(k * part for k, part in enumerate(jnp.split(p, 4, axis=1))),
    "roll": lambda p, i: jnp.roll(p, 3, axis=0),
    "tile": lambda p, i: jnp.tile(p, (2, 1)),
    "floor": lambda p, i: jnp.floor(3 * p) * p,
    "ceil": lambda p, i: jnp.ceil(3 * p) * p,
    "round": lambda p, i: jnp.round(3 * p) * p,
    "round_ties": lambda p, i: jnp.round(jnp.floor(4 * p) / 2) * p,
    "round_away": lambda p, i: lax.round(jnp.floor(4 * p) / 2) * p,
    "trunc": lambda p, i: jnp.trunc(3 * p) * p,
    "mod": lambda p, i: jnp.mod(3 * p, 0.7),
    "fmod": lambda p, i: jnp.fmod(p, jnp.sin(p) + 1.5),
    "floor_divide": lambda p, i: (3 * p // 0.7) * p,
    "power": positive(lambda p, i: p ** jnp.sin(p)),
    "power_constant": positive(lambda p, i: p ** 2.5),
    "power_integer": lambda p, i: p ** 3,
    "power_of_constant": lambda p, i: 2.0 ** p,
    "cbrt": positive(lambda p, i: p ** (1 / 3)),
    "tan": lambda p, i: jnp.tan(p / 4),
    "argmax": lambda p, i: jnp.argmax(p, axis=1) * p[:, 0],
    "argmin": lambda p, i: jnp.argmin(p, axis=0) * p[0],
    "argmax_ties": lambda p, i: jnp.argmax(jnp.floor(p), axis=-1) * p[0],
    "argmax_all": lambda p, i: jnp.argmax(p) * p[0],
    "argmax_nan": lambda p, i: jnp.argmax(jnp.where(p > 1, jnp.nan, p), axis=1) * p[0],
    "any": lambda p, i: jnp.any(p > 1.2, axis=1) * p[0],
    "all": lambda p, i: jnp.all(p > -1.2, axis=0) * p[0],
    "exclusive": lambda p, i: ((p > 0.5) ^ (p < 1)) * p,
    "min": lambda p, i: jnp.min(p, axis=1),
    "max": lambda p, i: jnp.max(p, axis=(0, 1)),
    "prod": lambda p, i: jnp.prod(p[:, :5], axis=1),
    "cumsum": lambda p, i: jnp.cumsum(p, axis=1),
    "cumsum_reverse": lambda p, i: lax.cumsum(p, axis=0, reverse=True),
    "cumprod": lambda p, i: jnp.cumprod(p, axis=0),
    "lookup": lambda p, i: p[i],
    "lookup_columns": lambda p, i: p[:, i[:3]],
    "lookup_many": lambda p, i: p[jnp.stack([i, i[::-1]])],
    "lookup_one": lambda p, i: p[i[0]],
    "lookup_element": lambda p, i: p[i[1], i[2]] * p,
    "lookup_pairs": lambda p, i: p[jnp.arange(SIZE), i],
    "lookup_any_pairs": lambda p, i: p[i, i[::-1]],
    "take_along_axis": lambda p, i: jnp.take_along_axis(p, i[:, None], axis=1),
    "lookup_integers": lambda p, i: jnp.arange(SIZE)[i] * p,
    "dynamic_slice": lambda p, i: lax.dynamic_slice(p, (i[0], i[1]), (3, 1)),
    "dynamic_rows": lambda p, i: lax.dynamic_slice_in_dim(p, i[2], 4),
    "dynamic_update": lambda p, i: lax.dynamic_update_slice(p, jnp.sin(p[:2, :3]), (i[0], 2)),
    "dynamic_update_row": lambda p, i: lax.dynamic_update_index_in_dim(p, p[1] * p[2], i[3], 0),
    "set_row": lambda p, i: p.at[2].set(jnp.sin(p[3])),
    "set_window": lambda p, i: p.at[1:3, 2:].set(0.5),
    "add_window": lambda p, i: p.at[3:6].add(p[:3]),
    "add_rows": lambda p, i: p.at[i].add(jnp.sin(p)),
    "set_rows": lambda p, i: p.at[jnp.asarray([5, 2, 7])].set(p[:3] * 2),
    "set_dynamic": lambda p, i: p.at[i[0]].set(7.0),
    "fori_loop": lambda p, i: lax.fori_loop(0, 3, lambda k, c: c * p + k, p),
    "scan": lambda p, i: lax.scan(lambda c, row: (c + row, c * row), p[0], p)[1],
    "scan_reverse": lambda p, i: lax.scan(lambda c, row: (c + row, c), p[0], p, reverse=True)[1],
    "cond": lambda p, i: lax.cond(i[0] > 3, jnp.sin, jnp.cos, p),
    "switch": lambda p, i: lax.switch(i[1] % 3, [jnp.sin, jnp.cos, jnp.exp], p),
    "weights": lambda p, i: p * jnp.asarray([1.0, 2, 3, 4, 5, 6, 7, 9]),
    "integers": lambda p, i: ((i * 5 - 7) % 6 + jnp.sign(i - 3) + i ** 2) * p,
    "top_k": lambda p, i: lax.top_k(p, 3)[0] * (1 + lax.top_k(p, 3)[1]),
    "top_k_accuracy": lambda p, i: jnp.any(lax.top_k(p, 2)[1] == i[:, None], axis=1) * p[0],
    "sort": lambda p, i: jnp.sort(p, axis=0),
    "argsort": lambda p, i: jnp.argsort(jnp.floor(p), axis=1) * p,
    "argsort_nan": lambda p, i: jnp.argsort(jnp.where(p > 1, jnp.nan, -p), descending=True) * p[0],
    "sort_unsigned": lambda p, i: lax.sort((i.astype(jnp.uint32) * jnp.uint32(0x77777777), i))[1] * p,
    "median": lambda p, i: jnp.median(p, axis=1),
    "max_row": lambda p, i: p.at[2].max(p[3]),
    "min_rows": lambda p, i: p.at[jnp.asarray([5, 2, 7])].min(p[:3]),
    "multiply_rows": lambda p, i: p.at[jnp.asarray([1, 4])].multiply(
        p[5:7], unique_indices=True),
    "count_max": lambda p, i: jnp.zeros(SIZE, jnp.int32).at[i].max(i) * p,
}


def loss(params, x, y):
    total = jnp.mean(x) * jnp.mean(params["shift"])
    for name, op in OPS.items():
        value = op(params[f"p_{name}"], y[:SIZE])
        total = total + jnp.sum(value * params[f"q_{name}"])
    return total


def case(rng):
    """As in losses.py."""
    params = {"shift": losses.normal(rng, SIZE)}
    for name, op in OPS.items():
        shape = jax.eval_shape(op, jax.ShapeDtypeStruct((SIZE, SIZE), np.float32),
                               jax.ShapeDtypeStruct((SIZE,), np.int32)).shape
        params[f"p_{name}"] = losses.normal(rng, SIZE, SIZE)
        params[f"q_{name}"] = losses.normal(rng, *shape)
    return (loss, params, losses.normal(rng, losses.ROWS, 4),
            rng.integers(0, SIZE, losses.ROWS).astype(np.int32))
