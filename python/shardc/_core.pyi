import builtins
from collections.abc import Callable
from typing import Any

class Output:
    code: int
    bytes: builtins.bytes
    report: builtins.bytes
    diagnostics: builtins.bytes
    messages: builtins.bytes
    explanation: builtins.bytes

class Compiler:
    def __init__(self, path: str) -> None: ...
    def compile(self, model: str, name: str, options: list[tuple[str, str]], explain: bool) -> Output: ...
    def describe_plan(self, plan: bytes) -> Output: ...
    def write_mlp(self, options: list[tuple[str, str]]) -> Output: ...
    def list_options(self) -> Output: ...

class Plan:
    is_for_gpu: bool
    @staticmethod
    def parse(bytes: bytes) -> Plan: ...
    def tensors(self) -> list[tuple[str, str, str, tuple[int, ...]]]: ...

class Result:
    loss: float
    seconds: float
    communication_seconds: float
    wire_bytes: int
    arrays: dict[str, Any]

class Executor:
    def __init__(
        self,
        plan: Plan,
        *,
        seed: int,
        threads: int,
        poison_padding: bool,
        share_replicas: bool,
        ordered_sums: bool,
        cpu_target: str,
    ) -> None: ...
    def initialize(self) -> None: ...
    def run(self, program: str, arrays: dict[str, Any]) -> Result: ...
    def set(self, name: str, arrays: dict[str, Any]) -> None: ...
    def get(self, name: str) -> Any: ...
    def load(self, path: str) -> None: ...
    def save(self, path: str) -> None: ...
    def evaluate(self, dataset: Dataset) -> tuple[int, float, int]: ...
    def predict(self, rows: Dataset | dict[str, Any]) -> Any: ...

class Dataset:
    @staticmethod
    def load(spec: str, folder: str, seed: int) -> Dataset: ...
    @staticmethod
    def from_arrays(arrays: dict[str, Any]) -> Dataset: ...

class Record:
    step: int
    epoch: int
    steps: int
    loss: float
    last_loss: float
    seconds: float
    samples_per_second: float

class Training:
    steps_per_epoch: int
    steps: int
    seed: int
    def resume(self, folder: str, step: int) -> None: ...
    def open_checkpoints(self, folder: str, every: int, keep: int) -> None: ...
    def finish(self) -> None: ...
    def __init__(self, executor: Executor, dataset: Dataset, *, seed: int, shuffle: bool) -> None: ...
    def advance(self, steps: int, on_progress: Callable[[int], object] | None) -> Record: ...

class Array:
    dtype_name: str
    shape: tuple[int, ...]
    def is_deleted(self) -> bool: ...
    def read(self) -> Any: ...

class CarriedStep:
    seconds: float
    def __init__(
        self,
        executor: Executor,
        program: str,
        arguments: list[tuple[str, str]],
        results: list[str],
        array_type: type[Any],
        array_types: list[type[Any]],
        convert: Callable[[str, Any, str], Any],
    ) -> None: ...
    def call(self, leaves: list[Any]) -> list[Any]: ...
