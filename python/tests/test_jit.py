"""shardc.jax.jit and explain: steps of JAX under shardc, against JAX."""

import collections
import copy
import functools
import gc
import io
import pathlib
import pickle
import re
import threading
from typing import NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import shardc
import shardc.jax as sj

OPTIMIZER = optax.adam(1e-2)


@pytest.fixture(scope="session")
def mesh():
    return jax.sharding.AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))


def start():
    rng = np.random.default_rng(0)
    params = {"w": rng.standard_normal((8, 4), np.float32), "b": np.zeros(4, np.float32)}
    x = rng.standard_normal((16, 8), np.float32)
    return params, OPTIMIZER.init(params), x, x[:, :4] * 2


def loss_fn(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) - y) ** 2)


def train_step(params, state, x, y):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


@pytest.fixture(scope="module")
def donating(mesh):
    rows, whole = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (("data",), ()))
    params = {"w": rows, "b": whole}
    state = jax.tree.map(lambda x: rows if x.shape == (8, 4) else whole, start()[1])
    return jax.jit(train_step, in_shardings=(params, state, rows, rows), donate_argnums=(0, 1))


@pytest.fixture(scope="module")
def train(donating):
    return sj.jit(donating, *start())


def references(steps=3):
    params, state, x, y = start()
    for _ in range(steps):
        params, state, loss = jax.jit(train_step)(params, state, x, y)
        yield params, state, loss


def assert_close(ours, theirs):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), ours, theirs)


def test_trains_as_jax_does(train):
    assert train.plan.report.mesh == {"data": 4}
    assert [each.kind for each in train.plan.collectives].count("all_gather") == 1
    params, state, x, y = start()
    for expected in references():
        params, state, loss = train(params, state, x, y)
        assert_close((params, state, loss), expected)
    assert type(state) is type(start()[1]) and int(state[0].count) == 3


def test_state_stays_inside(train):
    params, state, x, y = start()
    first, state, _ = train(params, state, x, y)
    value = np.asarray(first["w"])
    second, state, loss = train(first, state, x, y)
    assert first["w"].is_deleted() and "deleted" in repr(first["w"])
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8, 4\]"):
        np.asarray(first["w"])
    with pytest.raises(RuntimeError, match="deleted"):
        train(first, state, x, y)
    # Refused calls change nothing.
    assert not np.array_equal(value, second["w"])
    assert np.isfinite(train(second, state, x, y)[2])
    assert float(loss) == loss.item() and f"{loss:.3f}" == f"{float(loss):.3f}"


def test_arrays_that_nobody_hands_back_keep_their_values(train):
    x, y = start()[2:]
    ours, state, _ = train(*start())
    expected, count = np.asarray(ours["w"]), int(state[0].count)
    # Another training with the same function.
    for expected_other in references(2):
        other = train(*(start() if expected_other[1][0].count == 1 else (*other[:2], x, y)))
        assert_close(other, expected_other)
    np.testing.assert_array_equal(ours["w"], expected)
    assert int(state[0].count) == count
    _, (_, _, last) = references(2)
    np.testing.assert_allclose(train(ours, state, x, y)[2], last, rtol=1e-5)


def test_replaces_one_array(train):
    params, state, x, y = start()
    params, state, _ = train(params, state, x, y)
    params, theirs = {**params, "b": np.ones(4)}, next(references(1))
    theirs = ({**theirs[0], "b": jnp.ones(4)}, theirs[1])
    assert_close(train(params, state, x, y), jax.jit(train_step)(*theirs, x, y))


def test_takes_arrays_of_all_kinds(train):
    params, state, x, y = start()
    expected = float(train(params, state, x, y)[2])
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (x.astype(np.float64), np.asfortranarray(x), read_only, jnp.asarray(x),
                  np.repeat(x, 2, 0)[::2], x[::-1][::-1]):  # fmt: skip
        assert float(train(params, state, given, y)[2]) == expected
    # An example of float64 is taken as float32.
    assert float(sj.jit(train_step, {**params, "w": params["w"].astype(float)}, state, x, y,
                        carry={0: 0, 1: 1})(params, state, x, y)[2]) == pytest.approx(expected)  # fmt: skip
    jax_params = jax.tree.map(jnp.asarray, params)
    assert float(train(jax_params, state, x, y)[2]) == expected
    assert not jax_params["w"].is_deleted()


def test_results_are_arrays(train):
    params, state, x, y = start()
    params, state, loss = train(params, state, x, y)
    w = params["w"]
    assert (w.shape, w.dtype, w.ndim, w.size, len(w)) == ((8, 4), np.float32, 2, 32, 8)
    value = np.asarray(w)
    np.testing.assert_array_equal(np.from_dlpack(w), value)
    np.testing.assert_array_equal(jnp.from_dlpack(w), value)
    np.testing.assert_array_equal(np.from_dlpack(loss), np.asarray(loss))
    np.testing.assert_array_equal(jnp.tanh(w), jnp.tanh(value))
    np.testing.assert_array_equal(jax.jit(lambda p, x: x @ p["w"])(params, x), x @ jnp.asarray(value))
    np.testing.assert_array_equal(jnp.ones(8) @ w, jnp.ones(8) @ value)
    np.testing.assert_array_equal(w * 2 - w, value)
    np.testing.assert_array_equal(w[0], value[0])
    assert np.asarray(w, np.float64).dtype == np.float64
    assert jax.block_until_ready(loss) is loss and loss < 10
    assert str(w) == str(value) and eval(repr(loss), {"Array": np.array, "dtype": None, "float32": "f"}) == loss
    # Whoever asks for an array of JAX has one, also in a function that is traced.
    assert isinstance(w, jax.Array) and not isinstance(w, jax.core.Tracer)
    assert np.isclose(w.sum(), value.sum()) and w.T.shape == (4, 8) and w.at[0].set(0)[0, 0] == 0
    np.testing.assert_allclose(jax.vmap(lambda row: row @ w + w[0])(jnp.asarray(x)), x @ value + value[0], rtol=1e-5)
    assert isinstance(w @ jnp.ones(4), jax.Array) and isinstance(optax.global_norm(params), jax.Array)
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        np.testing.assert_array_equal(other, value)
    # What was read belongs to the reader; a loss can be read for ever.
    before = float(loss)
    train(params, state, x, y)
    np.testing.assert_array_equal(value, np.asarray(value))
    assert float(loss) == before


def test_refuses_other_arguments(train):
    params, state, x, y = start()
    params, state, _ = train(params, state, x, y)
    with pytest.raises(shardc.InputError, match=r"^x: f32\[8,8\] found, expected f32\[16,8\]"):
        train(params, state, x[:8], y)
    with pytest.raises(shardc.InputError, match="^x: int64 found, expected float32"):
        train(params, state, x.astype(np.int64), y)
    with pytest.raises(shardc.InputError, match="^y: "):
        train(params, state, x, "a text")
    with pytest.raises(shardc.InputError, match=r"^params\['w'\]: f32\[2,2\] found"):
        train({**params, "w": np.zeros((2, 2))}, state, x, y)
    with pytest.raises(TypeError, match=r"traced with: params\['b'\] is missing, params\['c'\] is unknown"):
        train({"w": params["w"], "c": x}, state, x, y)
    with pytest.raises(TypeError, match="traced with: y is missing"):
        train(params, state, x)
    with pytest.raises(TypeError, match="found, expected"):
        train(params, list(state), x, y)
    assert np.isfinite(train(params, state, x, y)[2])


def test_nan_is_passed_on_unless_jax_refuses_it(train):
    params, state, x, y = start()
    bad = np.where(np.arange(8) == 3, np.nan, x)
    assert np.isnan(train(params, state, bad, y)[2])
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"nan\) in loss.*x has a value"):
        train(params, state, bad, y)


def test_refuses_steps_with_their_place(mesh):
    params, state, x, y = start()
    with pytest.raises(sj.ExportError, match="which results replace which arguments"):
        sj.jit(train_step, params, state, x, y)
    with pytest.raises(sj.ExportError, match="carry: there is no result 7"):
        sj.jit(train_step, params, state, x, y, carry={7: 0})
    with pytest.raises(sj.ExportError, match="or no argument 9; the step has 4 arguments"):
        sj.jit(train_step, params, state, x, y, carry={0: 9})
    with pytest.raises(sj.ExportError, match="carry: 5 found, expected a dictionary"):
        sj.jit(train_step, *start(), carry=5)
    with pytest.raises(sj.ExportError, match="carry: result 2 does not have the arrays"):
        sj.jit(train_step, params, state, x, y, carry={2: 0})
    with pytest.raises(sj.ExportError, match="pmap is not supported: expected jax.jit"):
        sj.jit(jax.pmap(lambda x: x), np.zeros((1, 4), np.float32), carry={0: 0})
    with pytest.raises(sj.ExportError, match="params: argument 3 is not carried"):
        sj.jit(train_step, params, state, x, y, carry={0: 0, 1: 1}, params=3)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        sj.jit(lambda p, x: (p, 0.0 if x.sum() > 0 else 1.0), params, x, carry={0: 0})
    with pytest.raises(TypeError, match="partitoin"):
        sj.jit(train_step, params, state, x, y, carry={0: 0, 1: 1}, partitoin="cheapest")

    def loops(p, x):
        total = jnp.sum(p * x)
        total = jax.lax.while_loop(lambda t: t < 1, lambda t: t + total, total)  # The place.
        return p - total, total

    with pytest.raises(shardc.CompileError) as caught:
        sj.jit(loops, np.zeros(4, np.float32), np.zeros(4, np.float32), carry={0: 0})
    # Neither remarks nor lines of shardc.
    assert re.match(r"\S*test_jit.py:\d+:\d+: error: ", str(caught.value))
    assert "shardc/jax" not in str(caught.value)
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert caught.value.file.endswith("test_jit.py")
    assert lines[caught.value.line - 1].endswith("# The place.")


def debugging(p, x):
    jax.debug.print("{x}", x=x)  # The place.
    return p, x.sum()


def calling_python(p, x):
    return p, jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), np.float32), x)  # The place.


def decomposing(p, x):
    return p, jnp.linalg.svd(p, compute_uv=False).sum()  # The place.


def halving(p, x):
    return p, (p.astype(jnp.float16) @ p.T).astype(jnp.float32).sum()  # The place.


@pytest.mark.parametrize("step, advice", [
    (debugging, "return the value as one more result of it"),
    (calling_python, "return the value as one more result of it"),
    (decomposing, "use @, jnp.einsum"),
    (halving, "use jnp.bfloat16 or jnp.float32"),
])
def test_says_what_to_write_instead(step, advice):
    with pytest.raises(shardc.CompileError, match=advice) as caught:
        sj.jit(step, np.eye(4, dtype=np.float32), np.zeros(4, np.float32), carry={0: 0})
    lines = pathlib.Path(__file__).read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1)
                 if number > step.__code__.co_firstlineno and line.endswith("# The place."))
    assert (caught.value.file.rsplit("/")[-1], caught.value.line) == ("test_jit.py", place)


def test_refuses_data_of_bytes():
    def step(p, images):
        return p, (images.astype(jnp.float32) @ p).sum()

    with pytest.raises(shardc.CompileError, match='"images" has elements of .ui8.*use jnp.int32'):
        sj.jit(step, np.eye(4, dtype=np.float32), np.zeros((2, 4), np.uint8), carry={0: 0})


def test_policies_of_checkpoint_change_no_numbers():
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def loss(params, x, y):
        return loss_fn(params, x, y)

    def step(params, x, y):
        found, gradients = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), found

    params, _, x, y = start()
    ours = sj.jit(step, params, x, y, carry={0: 0})(params, x, y)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
                 ours, jax.jit(step)(params, x, y))


def test_compiles_without_arrays(donating):
    types = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), start())
    train = sj.jit(donating, *types, mesh={"data": 2}, threads=1)
    assert train.plan.report.mesh == {"data": 2}
    np.testing.assert_allclose(train(*start())[2], next(references(1))[2], rtol=1e-5)
    assert "2" in repr(train) and train.seconds > 0


@pytest.mark.parametrize("stage", ["trace", "lower", "export", "call"])
def test_takes_what_jax_has_traced_before(stage):
    jitted = jax.jit(train_step, donate_argnums=(0, 1))
    stages = {"trace": jitted.trace, "lower": jitted.lower}
    make = stages.get(stage) or jax.export.export(jitted)
    step = make(*start())
    train = sj.jit(step.call if stage == "call" else step, *start(),
                   carry={0: 0, 1: 1} if stage in ("export", "call") else None)
    params, state, x, y = start()
    for expected in references(2):
        params, state, loss = train(params, state, x, y)
        assert_close((params, state, loss), expected)
    if stage == "lower":
        with pytest.raises(sj.ExportError, match="not those that the step was traced with"):
            sj.jit(step, params, x, y)


def test_unused_arguments_and_non_array_results():
    def step(p, x, unused):
        return p - 0.1 * jax.grad(lambda p: jnp.mean((x * p) ** 2))(p), jnp.mean((x * p) ** 2)

    p = x = np.ones(4, np.float32)
    train = sj.jit(step, p, x, p, carry={0: 0})
    p, loss = train(p, x, p)
    assert float(loss) == 1
    # Another array takes the place of p.
    train = sj.jit(lambda p, x: (x, jnp.mean(x)), p, 2 * x, carry={0: 0})
    p, loss = train(p, 2 * x)
    assert float(loss) == 2 and np.array_equal(p, 2 * x)


def test_steps_without_a_float32_loss():
    params, _, x, y = start()
    update = lambda params, x, y: jax.tree.map(
        lambda p, g: p - 0.1 * g, params, jax.grad(loss_fn)(params, x, y))
    train = sj.jit(update, params, x, y, carry={0: 0})
    assert_close(train(params, x, y), jax.jit(update)(params, x, y))

    def in_bf16(params, x, y):
        x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
        cast = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        return update(params, x, y), {"loss": loss_fn(cast, x, y), "rows": jnp.sum(x, 1)}

    found, expected = (step(params, x, y)[1] for step in (
        sj.jit(in_bf16, params, x, y, carry={0: 0}), jax.jit(in_bf16)))
    assert found["loss"].dtype == jnp.bfloat16 and found["rows"].shape == (16,)
    np.testing.assert_allclose(float(found["loss"]), float(expected["loss"]), rtol=1e-2)


def test_parameters_have_the_names_of_data(tmp_path):
    """{"x": …} beside an argument x."""
    _, _, x, y = start()
    params = {"x": np.full((8, 4), 0.1, np.float32), "y": np.zeros(4, np.float32)}
    loss = lambda params, x, y: jnp.mean((x @ params["x"] + params["y"] - y) ** 2)
    step = lambda params, x, y: (jax.tree.map(
        lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x, y)), loss(params, x, y))
    train = sj.jit(step, params, x, y, carry={0: 0})
    assert_close(train(params, x, y), jax.jit(step)(params, x, y))
    assert "params.x" in [each.name for each in train.plan.shardings]
    sj.export_loss(tmp_path / "loss.mlir", loss, params, x, y, optimizer=sj.sgd(0.1),
                   initial=tmp_path / "init.npz")
    run = shardc.Executor(shardc.compile(tmp_path / "loss.mlir"))
    run.load(tmp_path / "init.npz")
    run.step(x=x, y=y)
    np.testing.assert_allclose(run.parameters["params.x"], step(params, x, y)[0]["x"], rtol=1e-5)


def test_explains_with_python_lines(donating):
    text = sj.explain(donating, *start())
    lines = pathlib.Path(__file__).read_text().splitlines()
    line = next(number for number, line in enumerate(lines, 1) if "jnp.tanh(x @" in line)
    assert f"test_jit.py:{line}" in text and "because" in text
    # The update is where the program calls optax.
    assert set(re.findall(r"(\w+\.py):\d+", text)) == {"test_jit.py"}


def test_handles_live_as_long_as_needed(donating):
    params, state, _ = sj.jit(donating, *start())(*start())
    gc.collect()
    assert np.isfinite(params["w"]).all()
    del params
    assert int(state[0].count) == 1


def test_threads_take_turns(train):
    params, state, x, y = start()
    expected = float(train(params, state, x, y)[2])
    losses = []
    threads = [threading.Thread(target=lambda: losses.append(float(train(params, state, x, y)[2])))
               for _ in range(8)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert losses == [expected] * 8


def draw_step(params, state, x):
    """Noise from a key that is carried, and a mask from a counter."""
    key, count = state
    key, sub = jax.random.split(key)
    noise = jax.random.normal(sub, x.shape)
    keep = jax.random.bernoulli(jax.random.fold_in(jax.random.key(3), count), 0.5, x.shape)
    return params + jnp.where(keep, noise, 0), (key, count + 1), jnp.max(x)


@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_keys_and_counters_are_carried(make_key):
    params, x = np.zeros((8, 4), np.float32), np.ones((8, 4), np.float32)
    state = make_key(2**31 + 7), np.uint32(2**32 - 2)
    step = sj.jit(draw_step, params, state, x, carry={0: 0, 1: 1})
    expected = params, state
    for _ in range(3):
        params, state, _ = step(params, state, x)
        *expected, _ = jax.jit(draw_step)(*expected, x)
    np.testing.assert_allclose(params, expected[0], atol=1e-5)
    key, count = state
    assert count.dtype == np.uint32 and int(count) == int(expected[1][1])
    bits = expected[1][0]
    bits = jax.random.key_data(bits) if make_key is jax.random.key else bits
    np.testing.assert_array_equal(np.asarray(key), bits)


def test_a_file_has_the_first_value_of_a_key(tmp_path):
    params, x = np.zeros((8, 4), np.float32), np.ones((8, 4), np.float32)
    state = jax.random.key(2**31 + 7), np.uint32(1)
    step = jax.jit(draw_step, donate_argnums=(0, 1))
    with pytest.raises(sj.ExportError, match="state.0.: starts with values that differ"):
        sj.export(tmp_path / "step.mlir", step, params, state, x)
    sj.export(tmp_path / "step.mlir", step, params, state, x, initial=tmp_path / "init.npz")
    run = shardc.Executor(shardc.compile(tmp_path / "step.mlir"))
    run.load(tmp_path / "init.npz")
    run.step(x=x)
    np.testing.assert_allclose(run.parameters["params"], draw_step(params, state, x)[0], atol=1e-5)


def test_shard_map_runs(mesh):
    params, _, x, y = start()

    def local(params, x, y):
        own = jax.tree.map(lambda w: jax.lax.pcast(w, "data", to="varying"), params)
        loss, gradients = jax.value_and_grad(loss_fn)(own, x, y)
        loss, gradients = jax.lax.pmean((loss, gradients), "data")
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients), loss

    rows = PartitionSpec("data")
    step = jax.shard_map(local, mesh=mesh, in_specs=(PartitionSpec(), rows, rows),
                         out_specs=(PartitionSpec(), PartitionSpec()))
    train = sj.jit(step, params, x, y, carry={0: 0})
    assert [each.kind for each in train.plan.collectives] == ["all_reduce"]
    expected, loss = jax.value_and_grad(loss_fn)(params, x, y)[::-1]
    params, found = train(params, x, y)
    np.testing.assert_allclose(found, loss, rtol=1e-5)
    np.testing.assert_allclose(params["w"], start()[0]["w"] - 0.1 * expected["w"], atol=1e-5)


@pytest.mark.parametrize("axes", [("data", "model"), ("model", "data")])
def test_shard_map_gathers_one_axis_of_a_dimension_over_two(axes):
    sizes = {"data": 2, "model": 4}
    mesh = jax.sharding.AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * 2)
    both = PartitionSpec(axes)

    def local(w, x):
        def loss(w):
            for axis in reversed(axes):
                w = jax.lax.all_gather(w, axis, tiled=True)
            return jax.lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), axes)

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(both, both), out_specs=(both, PartitionSpec())),
                   in_shardings=(NamedSharding(mesh, both),) * 2)
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((16, 16), np.float32), rng.standard_normal((64, 16), np.float32)
    train = sj.jit(step, w, x, carry={0: 0})
    kinds = [each.kind for each in train.plan.collectives]
    assert kinds == ["all_gather"] * 2 + ["all_reduce"] + ["reduce_scatter"] * 2
    # A device has 128 bytes of the weight: one axis after the other, there and back, and the loss.
    first, second = sizes[axes[1]], sizes[axes[0]]
    whole = 128 * (first - 1) + 128 * first * (second - 1)
    assert train.plan.report.wire_bytes_per_device == 2 * whole + 7
    expected, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    w_next, found = train(w, x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(w_next, w - 0.1 * gradient, atol=1e-5)


@pytest.mark.parametrize("pairs", [[(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 2), (3, 1)], [(2, 2)]])
def test_shard_map_sends_to_neighbours(mesh, pairs):
    rows = PartitionSpec("data")

    def local(w, x):
        def loss(w):
            return jnp.sum(jnp.sin(jax.lax.ppermute(w, "data", pairs)) * x)

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, jax.lax.psum(value, "data")

    def expected(w, x):
        shards, sent = w.reshape(4, 8, 16), jnp.zeros((4, 8, 16))
        for source, to in pairs:
            sent = sent.at[to].set(shards[source])
        return jnp.sum(jnp.sin(sent.reshape(32, 16)) * x)

    step = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(rows, rows), out_specs=(rows, PartitionSpec())),
                   in_shardings=(NamedSharding(mesh, rows),) * 2)
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((32, 16), np.float32), rng.standard_normal((32, 16), np.float32)
    train = sj.jit(step, w, x, carry={0: 0})
    # A device sends its 512 bytes there, and their gradient back. To itself it sends nothing.
    sends = [] if pairs == [(2, 2)] else ["collective_permute"]
    assert [each.kind for each in train.plan.collectives if each.kind != "all_reduce"] == 2 * sends
    assert train.plan.report.wire_bytes_per_device == 6 + 1024 * len(sends)
    value, gradient = jax.value_and_grad(expected)(w, x)
    w_next, found = train(w, x)
    np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(w_next, w - 0.1 * gradient, atol=1e-5)


class Pair(NamedTuple):
    first: object
    second: object


@jax.tree_util.register_pytree_node_class
class Reversed(NamedTuple):
    """Of which JAX flattens the fields in another order."""

    first: object
    second: object

    def tree_flatten(self):
        return (self.second, self.first), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(children[1], children[0])


@pytest.mark.parametrize("wrap", [
    lambda a, b: {"b": [a, None, ()], "a": (Pair(b, {}), [])},
    lambda a, b: collections.OrderedDict(b=a, a=Pair(b, None)),
    lambda a, b: [Reversed(a, b)],
    lambda a, b: Pair(a, {2: b, 1: None}),
    lambda a, b: {(1, 2): a, (1, 1): b},
], ids=["plain", "OrderedDict", "registered", "numbers", "tuples"])
def test_containers_are_those_of_the_function(wrap):
    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, x):
        params = jax.tree.map(lambda leaf: leaf + jnp.mean(x), params)
        return params, {"loss": jnp.sum(jax.tree.leaves(params)[0]), "more": [jnp.max(x)]}

    params = wrap(np.float32([1, 2, 3]), np.arange(8, dtype=np.float32).reshape(2, 4))
    x = np.ones((4, 2), np.float32)
    train = sj.jit(step, params, x, mesh={"data": 1})
    expected, found = params, params
    for _ in range(3):
        expected, wanted = step(jax.tree.map(jnp.asarray, expected), x)
        found, metrics = train(found, x)
        assert jax.tree.structure((found, metrics)) == jax.tree.structure((expected, wanted))
        assert type(found) is type(expected)
    jax.tree.map(np.testing.assert_allclose, (found, metrics), (expected, wanted))


def test_other_containers_are_refused(donating):
    train = sj.jit(donating, *start())
    params, state, x, y = start()
    for wrong in (list(params.values()), tuple(params.values()), None, {**params, "c": x},
                  {"w": params["w"]}, {"w": params["w"], "v": params["b"]},
                  {"w": [params["w"]], "b": params["b"]}, {"w": None, "b": params["b"]}):
        with pytest.raises(TypeError, match="the arguments are not those that the step was"):
            train(wrong, state, x, y)
    with pytest.raises(TypeError, match="the arguments are not those that the step was"):
        train(params, list(state), x, y)
    with pytest.raises(TypeError, match="the arguments are not those that the step was"):
        train(params, state, x.tolist(), y)
    assert train(params, state, x, y)[2] > 0
    # A dictionary in another order, and one of another type, are as good.
    assert train({"b": params["b"], "w": params["w"]}, state, x, y)[2] > 0
    assert train(dict(params), state, jnp.asarray(x), y)[2] > 0


def test_arrays_are_made_by_steps_alone():
    with pytest.raises(TypeError, match="steps alone make these arrays"):
        shardc._core.Array()
    with pytest.raises(TypeError, match="a handle of an array expected"):
        shardc._core.read_array(np.ones(2))


def test_static_and_keyword_arguments(mesh):
    @functools.partial(jax.jit, static_argnames=("kind",), donate_argnames="params")
    def step(params, x, *, kind, rate, y):
        fit = {"mse": lambda e: jnp.mean(e ** 2), "mae": lambda e: jnp.mean(jnp.abs(e))}[kind]
        loss, gradient = jax.value_and_grad(lambda w: fit(x @ w["w"] + w["b"] - y))(params)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradient), loss

    params, _, x, y = start()
    train = sj.jit(step, params, x, y=y, kind="mae", rate=0.1, mesh={"data": 1})
    expected, loss = step(jax.tree.map(jnp.asarray, params), x, kind="mae", rate=0.1, y=y)
    found, our_loss = train(params, rate=0.1, x=x, y=y, kind="mae")
    assert np.allclose(loss, our_loss) and np.allclose(found["w"], expected["w"], atol=1e-6)
    for wrong, message in (
            ({"kind": "mse"}, "the static argument kind is 'mse'.*compiled for 'mae'"),
            ({"kinds": "mae"}, "kinds is unknown"),
            ({"x": x}, "x is given by position and by name")):
        with pytest.raises(TypeError, match=message):
            train(found, x, **{"rate": 0.1, "y": y, "kind": "mae", **wrong})
    with pytest.raises(TypeError, match="y is missing"):
        train(found, x, rate=0.1, kind="mae")
    with pytest.raises(TypeError, match="the static argument kind is missing"):
        train(found, x, rate=0.1, y=y)
    train(found, x, rate=0.1, y=y, kind="mae")
    by_name = sj.jit(step, params, x, y=y, kind="mae", rate=0.1, carry={0: "params"},
                     params="params")
    assert np.allclose(by_name(params, x, y=y, kind="mae", rate=0.1)[1], loss)
    with pytest.raises(sj.ExportError, match="no argument"):
        sj.jit(step, params, x, y=y, kind="mae", rate=0.1, carry={0: "weights"})


def test_objects_of_nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.hidden, self.out = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 4, rngs=rngs)
            self.dropout = nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x, train):
            x = nnx.relu(self.hidden(x))
            return self.out(self.dropout(x, deterministic=not train))

    @functools.partial(nnx.jit, static_argnames=("train",))
    def step(model, optimizer, x, y, train):
        loss = lambda model: jnp.mean((model(x, train) - y) ** 2)
        value, gradients = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    def build():
        model = Model(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    _, _, x, y = start()
    model, optimizer = build()
    train = sj.jit(step, model, optimizer, x, y, train=True)
    found = [float(train(model, optimizer, x, y, train=True)) for _ in range(3)]
    theirs, state = build()
    expected = [float(step(theirs, state, x, y, train=True)) for _ in range(3)]
    assert np.allclose(found, expected, rtol=1e-5)
    assert np.allclose(model(jnp.asarray(x), False), theirs(x, False), atol=1e-5)
    assert int(optimizer.step[...]) == 3
    with pytest.raises(TypeError, match="the static argument train is False"):
        train(model, optimizer, x, y, train=False)
    with pytest.raises(shardc.InputError, match="x: f32.*expected f32"):
        train(model, optimizer, x[:8], y, train=True)
    assert np.allclose(train(model, optimizer, x, y, True), step(theirs, state, x, y, True))


def test_modules_of_equinox():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(8, 4, 16, 1, activation=jax.nn.gelu, key=jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, x, y):
        loss = lambda model: jnp.mean((jax.vmap(model)(x) - y) ** 2)
        value, gradients = eqx.filter_value_and_grad(loss)(model)
        updates, state = OPTIMIZER.update(gradients, state)
        return value, eqx.apply_updates(model, updates), state

    _, _, x, y = start()
    train = sj.jit(step, model, state, x, y)
    ours, theirs = (model, state), (model, state)
    for _ in range(3):
        found, *ours = train(*ours, x, y)
        expected, *theirs = step(*theirs, x, y)
        assert np.allclose(found, expected, rtol=1e-5)
    trained = ours[0]
    assert trained.activation is model.activation
    assert np.allclose(eqx.filter_jit(lambda model, x: jax.vmap(model)(x))(trained, x), jax.vmap(theirs[0])(x), atol=1e-5)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, trained)
    file.seek(0)
    loaded = eqx.tree_deserialise_leaves(file, model)
    np.testing.assert_array_equal(loaded.layers[0].weight, trained.layers[0].weight)


def test_scan_over_microbatches_needs_less_memory():
    params, state, x, y = start()
    x, y = np.tile(x, (64, 1)), np.tile(y, (64, 1))

    def finish(params, total):
        loss, gradients = jax.tree.map(lambda t: t / 8, total)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss

    def scanned(params, x, y):
        parts = x.reshape(8, -1, 8), y.reshape(8, -1, 4)
        zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        add = lambda total, batch: (jax.tree.map(
            jnp.add, total, jax.value_and_grad(loss_fn)(params, *batch)), None)
        return finish(params, jax.lax.scan(add, zero, parts)[0])

    def written_out(params, x, y):
        parts = [jax.value_and_grad(loss_fn)(params, *batch)
                 for batch in zip(jnp.split(x, 8), jnp.split(y, 8))]
        return finish(params, jax.tree.map(lambda *each: sum(each), *parts))

    loop, whole = (sj.jit(step, params, x, y, carry={0: 0}) for step in (scanned, written_out))
    beside_data = [each.plan.report.peak_bytes_per_device - x.nbytes - y.nbytes
                   for each in (loop, whole)]
    assert beside_data[0] < beside_data[1] / 4
    expected = jax.jit(scanned)(params, x, y)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
                 loop(params, x, y), expected)
