"""100000 steps, of executors and of a step of JAX, in constant memory."""

import gc
import pathlib

import numpy as np
import pytest

import shardc


def resident_bytes():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def check_memory(step, steps):
    """`step` is called so often, and memory has not grown since the first fifth."""
    for _ in range(steps // 5):
        step()
    before = resident_bytes()
    for _ in range(steps - steps // 5):
        step()
    # 8 bytes of each step would be more.
    assert resident_bytes() - before < 8 * (steps - steps // 5)


def test_executor():
    model = shardc.mlp([4, 4, 2], optimizer=shardc.Adam(1e-3), strategy="fsdp", mesh={"data": 2}, batch_size=4)
    run = shardc.Executor(shardc.compile(model), threads=1)
    x, y = np.ones((4, 4), np.float32), np.ones((4, 2), np.float32)
    number = iter(range(10**9))

    def step():
        assert run.step(x=x, y=y).loss < 1e6
        if next(number) % 10 == 0:
            run.parameters["w0"] = run.parameters["w0"]
            with pytest.raises(shardc.InputError):
                run.step(x=x, y=x)

    check_memory(step, 50000)


def test_step_of_jax():
    jax = pytest.importorskip("jax")
    import shardc.jax as sj

    def sgd(params, x):
        loss, gradients = jax.value_and_grad(lambda params: jax.numpy.mean((x @ params["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), loss

    x, start = np.ones((4, 4), np.float32), {"w": np.ones((4, 2), np.float32)}
    params, train = start, sj.jit(sgd, start, x, carry={0: 0}, threads=1)
    number = iter(range(10**9))

    def step():
        nonlocal params
        params, loss = train(params, x)
        assert float(loss) < 100
        if next(number) % 10 == 0:
            # Another training: the arrays of this one get values of their own.
            other, _ = train(start, x)
            assert np.isfinite(params["w"]).all() and np.isfinite(other["w"]).all()
            with pytest.raises(shardc.InputError):
                train(other, x[:2])
            train(other, x)
            with pytest.raises(RuntimeError, match="deleted"):
                train(other, x)

    check_memory(step, 50000)
