"""Models, and the compiler that turns them into plans."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from shardc import _core
from shardc._errors import CompileError, Message
from shardc._optimizers import Optimizer
from shardc._plan import Plan

Mesh: TypeAlias = str | Mapping[str, int]
Value: TypeAlias = "bool | int | float | str | os.PathLike[str] | Sequence[int] | Mapping[str, int]"

FOLDER = pathlib.Path(__file__).parent / "lib"


@dataclasses.dataclass(frozen=True)
class Model:
    """The text of a model; `name` stands for its file in messages."""

    text: str
    name: str = "model.mlir"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        return cls(pathlib.Path(path).read_text(), os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).write_text(self.text)


def compiler() -> _core.Compiler:
    return _core.Compiler(str(FOLDER / "shardc-compiler.so"))


def _to_text(value: Value) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={size}" for name, size in value.items())
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return ",".join(str(each) for each in value)


def _to_options(values: Mapping[str, Value | None]) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), _to_text(value)) for name, value in values.items() if value is not None]


def _errors_of(diagnostics: str) -> str:
    """The errors with their notes. Remarks and warnings are among the messages."""
    blocks = re.split(r"(?m)^(?=(?:\S+:\d+:\d+: )?(?:error|warning|remark): )", diagnostics)
    chosen = [each for each in blocks if re.match(r"(?:\S+:\d+:\d+: )?error: ", each)]
    return "".join(chosen) or diagnostics


def _check(output: _core.Output) -> tuple[Message, ...]:
    """The messages of the compiler; raises its errors."""
    messages = tuple(Message.from_json(each) for each in json.loads(output.messages))
    if output.code != 0:
        text = _errors_of(output.diagnostics.decode(errors="replace"))
        # Options have the names of keyword arguments here.
        text = re.sub(r"--([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), text)
        raise CompileError(text, messages, output.code)
    return messages


def mlp(
    layers: Sequence[int],
    *,
    activation: str | None = None,
    layer_norm: bool | None = None,
    residual_blocks: int | None = None,
    dropout: float | None = None,
    loss: str | None = None,
    optimizer: str | Optimizer | None = None,
    learning_rate: float | None = None,
    schedule: str | None = None,
    momentum: float | None = None,
    b1: float | None = None,
    b2: float | None = None,
    eps: float | None = None,
    weight_decay: float | None = None,
    clip_norm: float | None = None,
    strategy: str | None = None,
    stages: int | None = None,
    pipeline_schedule: str | None = None,
    virtual_stages: int | None = None,
    recompute: str | None = None,
    fsdp_min_size: int | None = None,
    mesh: Mesh | None = None,
    batch_size: int | None = None,
    microbatches: int | None = None,
) -> Model:
    """The model of a multi-layer perceptron; arguments are the flags of shardc-gen."""
    values: dict[str, Value | None] = dict(locals())
    if optimizer is not None and not isinstance(optimizer, str):
        values["optimizer"] = optimizer.name
        values.update(dataclasses.asdict(optimizer))
    output = compiler().write_mlp(_to_options(values))
    _check(output)
    return Model(output.bytes.decode(), "mlp.mlir")


def compile(
    model: Model | str | os.PathLike[str],
    *,
    mesh: Mesh | None = None,
    rules: str | None = None,
    batch_size: int | None = None,
    microbatches: int | None = None,
    stages: int | None = None,
    pipeline_schedule: str | None = None,
    virtual_stages: int | None = None,
    recompute: str | None = None,
    target: str | None = None,
    dtype: str | None = None,
    optimizer: str | Optimizer | None = None,
    learning_rate: float | None = None,
    schedule: str | None = None,
    clip_norm: float | None = None,
    matmul_precision: str | None = None,
    machine: str | os.PathLike[str] | None = None,
    partition: str | None = None,
    objective: str | None = None,
    gap: float | None = None,
    device_memory: int | None = None,
    bucket_bytes: int | None = None,
    regather: bool | None = None,
    ignore_expect: bool | None = None,
    verify_partition: bool | None = None,
    verify_each: bool | None = None,
    shardc_dump_dir: str | os.PathLike[str] | None = None,
) -> Plan:
    """Compiles a model, or the file of one; arguments are the flags of shardc-compile.

    An `optimizer` replaces the model's, such as shardc.Adam(1e-3, b1=0.95).

    Raises CompileError.
    """
    values: dict[str, Value | None] = dict(locals())
    del values["model"]
    if optimizer is not None and not isinstance(optimizer, str):
        values["optimizer"] = str(optimizer)
    if not isinstance(model, Model):
        model = Model.load(model)
    options = _to_options(values)
    output = compiler().compile(model.text, model.name, options, False)
    return Plan(output.bytes, output.report, _check(output), _Explainer(model, options))


class _Explainer:
    """Compiles once more, with fix-its, which takes longer."""

    def __init__(self, model: Model, options: list[tuple[str, str]]):
        self.model, self.options = model, options

    def __call__(self) -> str:
        output = compiler().compile(self.model.text, self.model.name, self.options, True)
        _check(output)
        return output.explanation.decode(errors="replace")
