"""shard_map in global form gives what JAX gives on 8 devices; needs JAX."""

import os

import numpy as np
import pytest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

from shardc.jax import ExportError
from shardc.jax._evaluate import lower_in_global_form

if jax.device_count() < 8:
    pytest.skip("JAX has less than 8 devices", allow_module_level=True)

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
BOTH = P(("data", "model"))
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def mapped(body, in_specs, out_specs, **more):
    return jax.shard_map(body, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **more)


def check(function, *args):
    wanted = jax.tree.leaves(jax.jit(function)(*args))
    closed = jax.make_jaxpr(function)(*args)
    found = lower_in_global_form(closed).compile()(*jax.tree.leaves(args))
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("out_spec, collective", [
    (P(), lambda x: lax.psum(x, ("data", "model"))),
    (P("model"), lambda x: lax.psum(x, "data")),
    (P(), lambda x: lax.pmax(x, ("data", "model"))),
    (P(), lambda x: lax.pmin(x, ("data", "model"))),
    (P(), lambda x: lax.pmean(x, ("model", "data"))),
    (P(), lambda x: lax.all_gather(x, ("data", "model"), tiled=True)),
    (P(), lambda x: lax.all_gather(x, ("model", "data"), axis=1)),
    (P("model"), lambda x: lax.all_gather(x, "data", axis=1, tiled=True)),
    (BOTH, lambda x: lax.psum_scatter(x, "data", scatter_dimension=1, tiled=True)),
    (BOTH, lambda x: lax.psum_scatter(x[:, :8], ("data", "model"), scatter_dimension=1)),
    (BOTH, lambda x: lax.all_to_all(x, "data", 1, 0, tiled=True)),
    (BOTH, lambda x: lax.all_to_all(x, ("data", "model"), 0, 1, tiled=True)),
    (BOTH, lambda x: lax.all_to_all(x[:, :4], "data", 1, 1)),
    (BOTH, lambda x: lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)])),
    (BOTH, lambda x: lax.ppermute(x, "model", [(1, 0)])),
    (BOTH, lambda x: lax.ppermute(x, "data", [(0, 1), (1, 2), (3, 3)])),
    (BOTH, lambda x: lax.ppermute(x, "data", [])),
    (BOTH, lambda x: lax.ppermute(x, ("data", "model"), [(i, (i + 3) % 8) for i in range(8)])),
    (BOTH, lambda x: lax.ppermute(x, ("model", "data"), [(7, 2), (2, 0), (5, 6)])),
    (BOTH, lambda x: x + lax.axis_index("model") + 10 * lax.axis_index(("model", "data"))),
    (BOTH, lambda x: x * lax.psum(1.0, "data")),
])
def test_collectives(out_spec, collective):
    check(mapped(collective, BOTH, out_spec, check_vma=False), normal(64, 16))


def test_gradients_and_scan():
    def body(layers, x, y):
        def layer(h, w):
            return jax.nn.relu(h @ lax.all_gather(w, ("data", "model"), tiled=True)), None
        h, _ = lax.scan(layer, x, layers)
        return lax.pmean(jnp.mean((jax.nn.log_softmax(h) - y) ** 2), ("data", "model"))

    loss = mapped(body, (P(None, ("data", "model")), BOTH, BOTH), P())
    check(lambda *args: jax.value_and_grad(loss)(*args), normal(3, 16, 16), normal(64, 16),
          normal(64, 16))


def test_some_axes_are_automatic():
    def body(w, x):
        hidden = lax.with_sharding_constraint(x @ w, P(None, "model"))
        return lax.pmean(jnp.sum(hidden), "data")

    loss = mapped(body, (P(), P("data")), P(), axis_names={"data"})
    check(lambda *args: jax.value_and_grad(loss)(*args), normal(16, 8), normal(64, 16))


def test_axes_may_be_explicit():
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    loss = jax.shard_map(lambda w, x: lax.pmean(jnp.sum(x @ w), "data"), mesh=mesh,
                         in_specs=(P(), P("data")), out_specs=P())
    x = jax.device_put(normal(64, 16), jax.sharding.NamedSharding(mesh, P("data")))
    check(lambda w: jax.value_and_grad(loss)(w, x), normal(16, 8))


@pytest.mark.parametrize("body, message", [
    (lambda x: lax.psum(x, "data", axis_index_groups=[[0, 1], [2, 3]]), "axis_index_groups"),
    (lambda x: lax.cond(True, lambda: lax.psum(x, "data"), lambda: x), "cond inside of shard_map"),
])
def test_errors_have_the_line(body, message):
    function = mapped(body, P("data"), P("data"), check_vma=False)
    closed = jax.make_jaxpr(function)(normal(64, 16))
    with pytest.raises(ExportError, match=f"test_shard_map.py:.*{message}"):
        lower_in_global_form(closed)
