"""The module `shardc`: models, plans, executors, training, errors."""

import inspect
import json
import threading

import numpy as np
import pytest

import shardc
from shardc._compile import compiler


def make_model(**options):
    given = {"strategy": "fsdp", "mesh": {"data": 4}, "batch_size": 16, "optimizer": shardc.Adam(1e-2)}
    return shardc.mlp([8, 16, 3], **{**given, **options})


@pytest.fixture(scope="module")
def plan():
    return shardc.compile(make_model())


def batch(rows=16):
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, 8), np.float32)
    return x, x[:, :3] * 2


def test_options_are_those_of_the_compiler():
    lists = json.loads(compiler().list_options().bytes)
    names = [each["name"].replace("-", "_") for each in lists["compile"]]
    assert list(inspect.signature(shardc.compile).parameters)[1:] == names
    names = [each.replace("-", "_") for each in lists["mlp"]]
    assert list(inspect.signature(shardc.mlp).parameters) == names


def test_a_plan_describes_itself(plan, tmp_path):
    assert plan.report.num_devices == 4
    assert plan.report.mesh == {"data": 4}
    assert plan.report.wire_bytes_per_device > 0
    assert sorted(each.kind for each in plan.collectives) == ["all_gather", "all_reduce", "reduce_scatter"]
    assert plan.collectives[0].axes == ("data",)
    w0 = next(each for each in plan.shardings if each.name == "w0")
    assert (w0.shape, w0.sharding, w0.local_shape) == ((8, 16), (("data",), ()), (2, 16))
    assert "because" in plan.explain() and "remove by" in plan.explain()
    assert plan._repr_html_().count("<svg") == len(plan.shardings)
    # w0 by rows over four devices.
    assert w0._repr_html_().count("<rect") == 4 and ">w0<" in w0._repr_html_()
    assert w0 == next(each for each in plan.shardings if each.name == "w0") and hash(w0)
    plan.save(tmp_path / "m.shardc")
    again = shardc.Plan.load(tmp_path / "m.shardc")
    assert again.collectives == plan.collectives
    assert "because" in again.explain()


def test_trains_steps(plan, tmp_path):
    run = shardc.Executor(plan, seed=3)
    x, y = batch()
    losses = [run.step(x=x, y=y).loss for _ in range(30)]
    assert losses[-1] < losses[0] / 2
    assert set(run.parameters) == {"w0", "b0", "w1", "b1"}
    assert run.parameters["w0"].shape == (8, 16)
    run.save(tmp_path / "p.safetensors")
    other = shardc.Executor(plan)
    assert not np.array_equal(other.parameters["w0"], run.parameters["w0"])
    other.load(tmp_path / "p.safetensors")
    for name, value in run.parameters.items():
        np.testing.assert_array_equal(other.parameters[name], value)
    other.parameters["b0"] = np.full(16, 2.0)
    assert (other.parameters["b0"] == 2).all()
    assert all(name in run.states for name in run.states)


def test_takes_arrays_of_all_kinds(plan):
    x, y = batch()
    expected = shardc.Executor(plan).step(x=x, y=y).loss
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (x.astype(np.float64), np.asfortranarray(x), read_only, x.tolist(), np.repeat(x, 2, 0)[::2]):
        assert shardc.Executor(plan).step(x=given, y=y).loss == expected


def test_bf16_is_float32_in_python():
    plan = shardc.compile(make_model(), dtype="bf16")
    run = shardc.Executor(plan)
    x, y = batch()
    assert np.isfinite(run.step(x=x, y=y).loss)
    assert run.parameters["w0"].dtype == np.float32


def test_refuses_inputs(plan):
    run = shardc.Executor(plan)
    x, y = batch()
    with pytest.raises(shardc.InputError, match="x"):
        run.step(x=x[:8], y=y)
    with pytest.raises(shardc.InputError, match="int64 found, expected float32"):
        run.step(x=x.astype(np.int64), y=y)
    with pytest.raises(shardc.InputError, match="y"):
        run.step(x=x)
    with pytest.raises(shardc.InputError, match="z"):
        run.step(x=x, y=y, z=y)
    with pytest.raises(shardc.RunError, match="nothing") as caught:
        run.run("nothing", {"x": x, "y": y})
    assert caught.value.code == "NOT_FOUND"
    with pytest.raises(KeyError):
        run.parameters["w9"]
    with pytest.raises(ValueError):
        run.parameters["w0"] = np.zeros((3, 3), np.float32)
    with pytest.raises(shardc.RunError):
        run.load("/no/such.npz")
    with pytest.raises(shardc.InputError):
        shardc.Executor(plan, cpu_target="x86-64-v9")
    # Nothing has changed.
    assert run.step(x=x, y=y).loss == shardc.Executor(plan).step(x=x, y=y).loss


def test_labels_of_other_integers():
    plan = shardc.compile(make_model(loss="softmax_cross_entropy"))
    run = shardc.Executor(plan)
    x, _ = batch()
    labels = np.arange(16) % 3
    assert np.isfinite(run.step(x=x, y=labels).loss)
    with pytest.raises(shardc.InputError, match="out of the range"):
        run.step(x=x, y=labels + 2**40)
    with pytest.raises(shardc.InputError):
        run.step(x=x, y=labels + 3)


def test_compile_errors_have_a_place(tmp_path):
    file = tmp_path / "m.mlir"
    file.write_text("module {\n  nonsense\n}\n")
    with pytest.raises(shardc.CompileError) as caught:
        shardc.compile(file)
    error = caught.value
    assert (error.file, error.line, error.column, error.code) == (str(file), 2, 3, 2)
    with pytest.raises(shardc.CompileError, match="a device needs [0-9]+ bytes of memory") as caught:
        shardc.compile(make_model(), device_memory=1000)
    assert caught.value.code == 4
    with pytest.raises(shardc.CompileError, match="^error: device_memory: '-1' is not"):
        shardc.compile(make_model(), device_memory=-1)
    with pytest.raises(shardc.CompileError, match="did you mean 'fsdp'"):
        make_model(strategy="fspd")
    with pytest.raises(TypeError):
        shardc.compile(make_model(), partitoin="cheapest")


def test_trains_on_data():
    model = shardc.mlp(
        [64, 32, 10], loss="softmax_cross_entropy", optimizer=shardc.Adam(1e-2), mesh={"data": 2},
        strategy="dp", batch_size=64,
    )  # fmt: skip
    plan = shardc.compile(model)
    run = shardc.Executor(plan)
    records = shardc.fit(run, "digits", epochs=3, seed=1, progress=True)
    assert [record.epoch for record in records] == [1, 2, 3]
    assert records[-1].loss < records[0].loss
    evaluation = shardc.evaluate(run, "digits:test")
    assert evaluation.rows == 360 and evaluation.accuracy > 0.8
    # The same steps in other pieces.
    other = shardc.Executor(plan)
    pieces = list(shardc.train(other, "digits", epochs=3, every=7, seed=1))
    assert sum(record.steps for record in pieces) == records[-1].step
    np.testing.assert_array_equal(other.parameters["w0"], run.parameters["w0"])
    with pytest.raises(shardc.InputError, match="y"):
        shardc.fit(run, {"x": np.zeros((64, 64))})


def forward(run, x):
    """The MLP of make_model in NumPy."""
    w = run.parameters
    return np.maximum(x @ w["w0"] + w["b0"], 0) @ w["w1"] + w["b1"]


def test_predicts(plan, tmp_path):
    run = shardc.Executor(plan)
    x, y = batch(37)
    shardc.fit(run, {"x": x, "y": y}, epochs=2)
    expected = forward(run, x)
    outputs = run.predict(x=x)
    assert outputs.dtype == np.float32 and outputs.flags.writeable
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)
    # Whatever the number of rows, with labels and without.
    for rows in (1, 2, 15, 16, 17, 32):
        np.testing.assert_allclose(run.predict(x=x[:rows]), expected[:rows], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(run.predict(x=x, y=y), outputs)
    np.testing.assert_array_equal(run.predict(x=x.astype(np.float64).tolist()), outputs)
    # The data of shardc-run.
    np.testing.assert_array_equal(shardc.predict(run, {"x": x}), outputs)
    np.savez(tmp_path / "new.npz", x=x)
    np.testing.assert_array_equal(shardc.predict(run, tmp_path / "new.npz"), outputs)
    with pytest.raises(shardc.InputError, match='no input or label "z"'):
        run.predict(x=x, z=x)
    with pytest.raises(shardc.InputError, match='"x" is missing'):
        run.predict(y=y)
    with pytest.raises(shardc.InputError, match=r"f32\[37,7\], but the model's input is f32\[16,8\]"):
        run.predict(x=x[:, :7])
    with pytest.raises(shardc.InputError, match="no rows"):
        run.predict(x=x[:0])
    with pytest.raises(shardc.InputError, match="row 3 holds nan"):
        run.predict(x=np.where(np.arange(37)[:, None] == 3, np.float32("nan"), x))


def test_predicts_logits_in_bf16_and_without_dropout():
    layers = shardc.mlp([8, 32, 5], loss="softmax_cross_entropy", dropout=0.5, mesh={"data": 3}, strategy="dp",
                        batch_size=10)  # fmt: skip
    exact = shardc.Executor(shardc.compile(layers))
    x, _ = batch(23)
    outputs = exact.predict(x=x)
    np.testing.assert_allclose(outputs, forward(exact, x), rtol=1e-5, atol=1e-5)
    rounded = shardc.Executor(shardc.compile(layers, dtype="bf16")).predict(x=x)
    assert rounded.dtype == np.float32 and rounded.shape == (23, 5)
    np.testing.assert_allclose(rounded, outputs, atol=5e-2 * np.abs(outputs).max())


def test_a_model_without_predictions_says_why():
    text = shardc.mlp([3, 4, 2], mesh={"data": 1}, strategy="dp", batch_size=4).text
    second = """%z = shardc.linear %h0, %w1, %b1 : tensor<4x4xf32>, tensor<4x2xf32>, tensor<2xf32> -> tensor<4x2xf32>
    %other = shardc.mse %z, %y : tensor<4x2xf32> -> tensor<f32>
    %both = shardc.add %loss, %other : tensor<f32>
    return %both"""
    run = shardc.Executor(shardc.compile(shardc.Model(text.replace("return %loss", second))))
    with pytest.raises(shardc.RunError, match="the loss is computed from several values") as caught:
        run.predict(x=np.zeros((4, 3), np.float32))
    assert caught.value.code == "NOT_FOUND"


def test_threads_take_turns(plan):
    run = shardc.Executor(plan)
    x, y = batch()
    losses = []
    threads = [threading.Thread(target=lambda: losses.append(run.step(x=x, y=y).loss)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = shardc.Executor(plan)
    assert sorted(losses, reverse=True) == [other.step(x=x, y=y).loss for _ in range(8)]


def test_checkpoints_go_on(plan, tmp_path):
    x, y = batch(64)
    data, folder = {"x": x, "y": y}, tmp_path / "runs"
    whole = shardc.Executor(plan)
    shardc.fit(whole, data, epochs=4, seed=5)
    first = shardc.Executor(plan)
    shardc.fit(first, data, epochs=2, seed=5, checkpoint_dir=folder, checkpoint_every=3, keep=2)
    assert sorted(each.name for each in folder.iterdir() if each.is_dir()) == ["step-6", "step-8"]
    # On another mesh.
    other = shardc.Executor(shardc.compile(make_model(), mesh={"data": 2}))
    records = shardc.fit(other, data, epochs=4, checkpoint_dir=folder, resume=True)
    assert [(each.step, each.epoch) for each in records] == [(12, 3), (16, 4)]
    np.testing.assert_allclose(other.parameters["w0"], whole.parameters["w0"], rtol=1e-5)
    # From an earlier step, with the bits of the training that was not interrupted.
    again = shardc.Executor(plan, seed=9)
    shardc.fit(again, data, epochs=4, checkpoint_dir=folder, resume=8)
    np.testing.assert_array_equal(again.parameters["w0"], whole.parameters["w0"])
    loaded = shardc.Executor(plan)
    loaded.load(folder / "step-16")
    np.testing.assert_array_equal(loaded.states["w0.m"], again.states["w0.m"])
    with pytest.raises(shardc.InputError, match="seed: 1 found, and the checkpoint has 5"):
        shardc.fit(loaded, data, seed=1, checkpoint_dir=folder, resume=True)
    with pytest.raises(shardc.RunError, match="step-7"):
        shardc.fit(loaded, data, checkpoint_dir=folder, resume=7)
    with pytest.raises(shardc.RunError, match="it has checkpoints of another training"):
        shardc.fit(loaded, data, checkpoint_dir=folder)
    # What fails writes none.
    with pytest.raises(shardc.RunError, match="the loss is inf at step 1"):
        shardc.fit(loaded, {"x": x, "y": y * 1e30}, checkpoint_dir=tmp_path / "bad", every=1)
    assert not any(each.is_dir() for each in (tmp_path / "bad").iterdir())
    with pytest.raises(shardc.InputError, match="need a checkpoint_dir"):
        shardc.fit(loaded, data, resume=True)
    assert len(shardc.fit(again, data, checkpoint_dir=tmp_path / "new", resume="if-any")) == 1


def test_hyper_parameters_of_optimizers(plan):
    text = make_model(optimizer=shardc.AdamW(1e-2, b1=0.8, b2=0.95, eps=1e-6, weight_decay=0.1)).text
    assert "adamw, learning_rate = 0.01, b1 = 0.8, b2 = 0.95, eps = " in text
    with pytest.raises(shardc.CompileError, match="b2: expected a number in"):
        make_model(optimizer=shardc.Adam(b2=1.0))
    replaced = shardc.compile(make_model(), optimizer=shardc.Momentum(0.1, momentum=0.5))
    same = shardc.compile(make_model(optimizer=shardc.Momentum(0.1, momentum=0.5)))
    x, y = batch()
    runs = [shardc.Executor(each) for each in (replaced, same)]
    assert [runs[0].step(x=x, y=y).loss for _ in range(3)] == [runs[1].step(x=x, y=y).loss for _ in range(3)]


class Producer:
    """An array by DLPack alone, as libraries other than NumPy give it."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        if self.device[0] != 1:
            raise BufferError("the array is on a GPU")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_takes_arrays_by_dlpack(plan):
    run = shardc.Executor(plan)
    x, y = batch()
    expected = shardc.Executor(plan).step(x=x, y=y).loss
    assert run.step(x=Producer(x), y=Producer(y.copy())).loss == expected
    records = shardc.fit(shardc.Executor(plan), {"x": Producer(x), "y": Producer(y.copy())}, shuffle=False)
    assert records[0].last_loss == expected
    with pytest.raises(shardc.InputError, match="^x: expected an array in the memory of the CPU"):
        run.step(x=Producer(x, device=(2, 0)), y=y)
