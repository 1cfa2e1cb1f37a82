"""Losses and train steps by devices, with shard_map: (loss, parameters, x, y, specs of
the parameters) or (step, parameters, state, x, y, specs)."""

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec as P

import losses

SIZES = (16, 32, 16)


def _squares(body, mesh, specs, x_spec):
    """The loss of a body that gives the output of the network."""

    def local(params, x, y):
        axes = jax.tree.leaves(tuple(x_spec))
        return lax.pmean(jnp.mean((body(params, x) - y) ** 2), axes)

    return jax.shard_map(local, mesh=mesh, in_specs=(specs, x_spec, x_spec), out_specs=P())


def _case(rng):
    weights = {"w0": losses.normal(rng, SIZES[0], SIZES[1]),
               "b0": losses.normal(rng, SIZES[1]),
               "w1": losses.normal(rng, SIZES[1], SIZES[2])}
    params = jax.tree.map(lambda w: 0.2 * w, weights)
    return params, losses.normal(rng, losses.ROWS, 16), losses.normal(rng, losses.ROWS, 16)


def _with_loss(body, specs, x_spec=P("data")):
    def build(rng, mesh):
        params, x, y = _case(rng)
        return _squares(body, mesh, specs, x_spec), params, x, y, specs

    return build


def _replicated(params, x):
    return jax.nn.gelu(x @ params["w0"] + params["b0"]) @ params["w1"]


def _megatron(params, x):
    hidden = jax.nn.relu(x @ params["w0"] + params["b0"])
    return lax.psum(hidden @ params["w1"], "model")


def _gathered(params, x):
    whole = jax.tree.map(lambda w: lax.all_gather(w, "data", tiled=True), params)
    return _replicated(whole, x)


def _sequence(params, x):
    """Rows over "model" too between the layers: gathered before, scattered behind."""
    rows = lax.all_gather(x, "model", tiled=True)
    hidden = jax.nn.relu(rows @ params["w0"] + params["b0"])
    return lax.psum_scatter(hidden @ params["w1"], "model", tiled=True)


def _moved(params, x):
    """Columns of the rows of all devices in between; then rows of the neighbour."""
    hidden = jax.nn.gelu(x @ params["w0"] + params["b0"])
    columns = lax.all_to_all(hidden, "data", 1, 0, tiled=True)
    scaled = columns / (1.0 + jnp.sum(columns**2, axis=0))
    rows = lax.all_to_all(scaled, "data", 0, 1, tiled=True)
    size = lax.axis_size("data")
    ring = [(i, (i + 1) % size) for i in range(size)]
    return (hidden + lax.ppermute(rows, "data", ring)) @ params["w1"]


COLUMNS = {"w0": P(None, "model"), "b0": P("model"), "w1": P("model", None)}
ROWS = {"w0": P("data", None), "b0": P("data"), "w1": P("data", None)}

def _indexed(rng, mesh):
    """axis_index, pmax and a reduction over both axes."""
    params, x, y = _case(rng)
    specs = {"w0": P(), "b0": P(), "w1": P()}

    def local(params, x, y):
        weight = 1.0 + lax.axis_index("data").astype(jnp.float32)
        out = _replicated(params, x)
        scale = lax.pmax(lax.stop_gradient(jnp.max(jnp.abs(out))), "data")
        return lax.psum(weight * jnp.sum((out / scale - y) ** 2), "data") / 1000.0

    loss = jax.shard_map(local, mesh=mesh, in_specs=(specs, P("data"), P("data")),
                         out_specs=P())
    return loss, params, x, y, specs


LOSSES = {
    "shard_map_dp": _with_loss(_replicated, {"w0": P(), "b0": P(), "w1": P()}),
    "shard_map_tp": _with_loss(_megatron, COLUMNS),
    "shard_map_fsdp": _with_loss(_gathered, ROWS),
    "shard_map_sequence": _with_loss(_sequence, COLUMNS, P(("data", "model"))),
    "shard_map_indexed": _indexed,
    "shard_map_moved": _with_loss(_moved, {"w0": P(), "b0": P(), "w1": P()}),
}


def _with_optax(name, optimizer):
    """JAX differentiates shard_map."""

    def build(rng, mesh):
        loss_fn, params, x, y, specs = LOSSES[name](rng, mesh)

        def step(params, state, x, y):
            loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, loss

        return step, params, optimizer.init(params), x, y, specs

    return build


def _by_hand(rng, mesh):
    """The whole step by devices: gradients in the body, their mean over the devices."""
    params, x, y = _case(rng)
    specs = {"w0": P(), "b0": P(), "w1": P()}

    def local(params, state, x, y):
        # Without pcast the gradients are sums over the devices already.
        own = jax.tree.map(lambda w: lax.pcast(w, "data", to="varying"), params)
        loss, gradients = jax.value_and_grad(
            lambda p: jnp.mean((_replicated(p, x) - y) ** 2))(own)
        loss, gradients = lax.pmean((loss, gradients), "data")
        params = jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)
        return params, state + 1, loss

    step = jax.shard_map(local, mesh=mesh, in_specs=(specs, P(), P("data"), P("data")),
                         out_specs=(specs, P(), P()))
    return step, params, jnp.zeros((), jnp.int32), x, y, specs


def _zero(rng, mesh):
    """FSDP by hand: shards of the parameters, gathered for use; the gradients are
    summed and scattered."""
    params, x, y = _case(rng)

    def local(params, state, x, y):
        whole = jax.tree.map(lambda w: lax.all_gather(w, "data", tiled=True), params)
        loss, gradients = jax.value_and_grad(
            lambda p: jnp.mean((_replicated(p, x) - y) ** 2))(whole)
        mine = jax.tree.map(lambda g: lax.psum_scatter(g, "data", tiled=True)
                            / lax.axis_size("data"), gradients)
        params = jax.tree.map(lambda p, g: p - 0.05 * g, params, mine)
        return params, state + 1, lax.pmean(loss, "data")

    step = jax.shard_map(local, mesh=mesh, in_specs=(ROWS, P(), P("data"), P("data")),
                         out_specs=(ROWS, P(), P()))
    return step, params, jnp.zeros((), jnp.int32), x, y, ROWS


STEPS = {
    "step_shard_map_tp": _with_optax("shard_map_tp", optax.adam(1e-2)),
    "step_shard_map_fsdp": _with_optax("shard_map_fsdp", optax.sgd(0.05)),
    "step_shard_map_by_hand": _by_hand,
    "step_shard_map_zero": _zero,
}
