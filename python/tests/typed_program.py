"""A program of a user, for scripts/check-python.sh to check its types; it is not run."""

from typing import Any, assert_type

import jax
import numpy as np
from numpy.typing import NDArray

import shardc
import shardc.jax as sj

model = shardc.mlp([64, 10], optimizer=shardc.Adam(1e-3), strategy="fsdp", mesh={"data": 8}, batch_size=256)
plan = assert_type(shardc.compile(model, partition="cheapest", machine="h100"), shardc.Plan)
assert_type(plan.report.wire_bytes_per_device, int)
assert_type([each.kind for each in plan.collectives], list[str])
run = shardc.Executor(plan, seed=0)
assert_type(run.step(x=np.zeros((256, 64)), y=np.zeros(256, int)).loss, float)
assert_type(run.parameters["w0"], NDArray[Any])
for record in shardc.train(run, "digits", epochs=5):
    assert_type(record.loss, float)
assert_type(shardc.fit(run, "digits"), list[shardc.Record])
assert_type(shardc.evaluate(run, "digits").accuracy, float | None)

try:
    shardc.compile("model.mlir", partition="cheapest")
except shardc.CompileError as error:
    assert_type((error.file, error.line, error.notes), tuple[str, int, tuple[shardc.Message, ...]])

shardc.compile(model, partitoin="cheapest")  # type: ignore[call-arg]


def step(params: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return params, x.sum()


train = assert_type(sj.jit(step, np.zeros(4), np.zeros(4), carry={0: 0}, mesh={"data": 2}), sj.Step)
assert_type(train.plan.report.mesh, dict[str, int])
assert_type(sj.explain(step, np.zeros(4), np.zeros(4), carry={0: "params"}), str)
sj.export_loss("loss.mlir", step, 0, 0, 0, optimizer=sj.adam(1e-3))
