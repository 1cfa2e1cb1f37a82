import os
from collections.abc import Callable, Mapping
from typing import Any

import jax

import shardc
from shardc._compile import Value

Path = str | os.PathLike[str]

class ExportError(ValueError): ...

class Optimizer:
    kind: str
    arguments: dict[str, float]

def sgd(learning_rate: float, momentum: float | None = None) -> Optimizer: ...
def adam(learning_rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer: ...
def adamw(
    learning_rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-4
) -> Optimizer: ...

class Array(jax.Array): ...

class Step:
    plan: shardc.Plan
    @property
    def seconds(self) -> float: ...
    def explain(self) -> str: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def jit(
    step: Callable[..., Any],
    *args: Any,
    carry: Mapping[int, int | str] | None = None,
    params: int | str = 0,
    threads: int = 0,
    **options: Value | Any,
) -> Step: ...
def explain(
    step: Callable[..., Any],
    *args: Any,
    carry: Mapping[int, int | str] | None = None,
    params: int | str = 0,
    **options: Value | Any,
) -> str: ...
def export(
    path: Path,
    step: Callable[..., Any],
    *args: Any,
    carry: Mapping[int, int | str] | None = None,
    params: int | str = 0,
    initial: Path | None = None,
    **kwargs: Any,
) -> None: ...
def export_loss(
    path: Path,
    loss_fn: Callable[..., Any],
    params: Any,
    x: Any,
    y: Any,
    *,
    optimizer: Optimizer | None = None,
    clip_norm: float | None = None,
    shardings: Any = None,
    initial: Path | None = None,
    has_aux: bool = False,
) -> None: ...
