"""Executors: plans that run on virtual CPU devices."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardc import _core
from shardc._errors import InputError
from shardc._plan import Plan

Array = NDArray[Any]

# bf16 travels as the bits of uint16.
_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "f32": np.float32,
        "bf16": np.uint16,
        "f64": np.float64,
        "i32": np.int32,
        "i64": np.int64,
        "bool": np.bool_,
    }.items()
}


def _to_bf16(array: Array) -> Array:
    """Rounds f32 to the nearest bf16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype(np.uint16)


def to_array(name: str, value: Any) -> Array:
    """A NumPy array, without a copy where the memory of the CPU has the value."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{name}: expected an array in the memory of the CPU: {error}",
                             "INVALID_ARGUMENT") from error  # fmt: skip
    array: Array = np.asarray(value)
    return array


def to_input(name: str, value: Any, dtype: str) -> Array:
    """A dense array of the element type; integers are converted if they stay the same."""
    array = to_array(name, value)
    expected = _TYPES[dtype]
    if dtype == "bf16":
        if array.dtype.name == "bfloat16":
            array = array.view(np.uint16)
        elif array.dtype.kind == "f":
            array = _to_bf16(array.astype(np.float32))
        else:
            raise InputError(f"{name}: {array.dtype} found, expected bfloat16 or float32", "INVALID_ARGUMENT")
    elif array.dtype != expected:
        kinds = array.dtype.kind + expected.kind
        if kinds not in ("ff", "ii", "ui"):
            raise InputError(f"{name}: {array.dtype} found, expected {expected}", "INVALID_ARGUMENT")
        converted = array.astype(expected)
        if expected.kind == "i" and not np.array_equal(converted, array):
            raise InputError(f"{name}: a value is out of the range of {expected}", "INVALID_ARGUMENT")
        array = converted
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def from_output(array: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


class StepResult:
    """The results of a run: `loss`, and global arrays by their names."""

    __slots__ = ("arrays", "communication_seconds", "loss", "seconds", "wire_bytes")

    def __init__(self, result: _core.Result):
        self.loss = result.loss
        self.seconds = result.seconds
        self.communication_seconds = result.communication_seconds
        self.wire_bytes = result.wire_bytes
        self.arrays: dict[str, Array] = result.arrays

    def __repr__(self) -> str:
        return f"<shardc.StepResult loss={self.loss:g}>"


class Tensors(MutableMapping[str, Array]):
    """Parameters or states by name: reading copies, assigning sets all shards."""

    def __init__(self, executor: _core.Executor, types: dict[str, str]):
        self._executor, self._types = executor, types

    def __getitem__(self, name: str) -> Array:
        dtype = self._types[name]
        return from_output(self._executor.get(name), dtype)

    def __setitem__(self, name: str, value: Any) -> None:
        self._executor.set(name, {name: to_input(name, value, self._types[name])})

    def __delitem__(self, name: str) -> None:
        raise TypeError("tensors of a plan cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


class Executor:
    """Runs a plan on the virtual CPU devices of its mesh.

    Threads may share an executor: its calls take turns. `threads=0` takes as many as
    the process may use. Parameters have their initial values, from `seed`.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        seed: int = 0,
        threads: int = 0,
        poison_padding: bool = False,
        share_replicas: bool = True,
        ordered_sums: bool = False,
        cpu_target: str = "",
    ):
        self.plan = plan
        self.core = _core.Executor(
            plan.core,
            seed=seed,
            threads=threads,
            poison_padding=poison_padding,
            share_replicas=share_replicas,
            ordered_sums=ordered_sums,
            cpu_target=cpu_target,
        )
        tensors = plan.core.tensors()
        self._inputs = {name: dtype for name, role, dtype, _ in tensors if role in ("input", "label")}
        self._parameters = {name: dtype for name, role, dtype, _ in tensors if role == "parameter"}
        self._states = {name: dtype for name, role, dtype, _ in tensors if role == "state"}
        self.initialize()

    def initialize(self) -> None:
        """Gives parameters and states their initial values."""
        self.core.initialize()

    def _to_inputs(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        return {
            name: to_input(name, value, self._inputs[name]) if name in self._inputs else np.asarray(value)
            for name, value in arrays.items()
        }

    def run(self, program: str, arrays: Mapping[str, Any]) -> StepResult:
        """Runs a program, "train_step" or "evaluate", on one batch of global arrays."""
        return StepResult(self.core.run(program, self._to_inputs(arrays)))

    def step(self, **arrays: Any) -> StepResult:
        """Trains on a batch; the loss is that before the update."""
        return self.run("train_step", arrays)

    def predict(self, **arrays: Any) -> Array:
        """The outputs of the network for any number of rows, without labels and dropout.

        Rows run in batches of the plan, of which the last is filled up. Labels may be
        given, and are ignored.
        """
        outputs: Array = self.core.predict(self._to_inputs(arrays))
        return outputs

    @property
    def parameters(self) -> Tensors:
        return Tensors(self.core, self._parameters)

    @property
    def states(self) -> Tensors:
        """Of the optimizer."""
        return Tensors(self.core, self._states)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Sets all parameters from FILE.npz or FILE.safetensors, or parameters and states
        from a checkpoint, such as the folder runs/a/step-300."""
        self.core.load(os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all parameters to FILE.npz or FILE.safetensors."""
        self.core.save(os.fspath(path))
