"""Optimizers, with the hyper-parameters and defaults of optax."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar


class Text:
    """Optimizers as the flag --optimizer of shardc-compile takes them."""

    name: ClassVar[str]

    def __str__(self) -> str:
        numbers: dict[str, float | None] = asdict(self)  # type: ignore[call-overload]
        return ",".join([self.name, *(f"{key}={value!r}" for key, value in numbers.items() if value is not None)])


@dataclass(frozen=True)
class SGD(Text):
    learning_rate: float = 0.01
    weight_decay: float | None = None
    name: ClassVar[str] = "sgd"


@dataclass(frozen=True)
class Momentum(Text):
    learning_rate: float = 0.01
    momentum: float | None = None
    weight_decay: float | None = None
    name: ClassVar[str] = "momentum"


@dataclass(frozen=True)
class Adam(Text):
    learning_rate: float = 0.01
    b1: float | None = None
    b2: float | None = None
    eps: float | None = None
    weight_decay: float | None = None
    name: ClassVar[str] = "adam"


@dataclass(frozen=True)
class AdamW(Text):
    learning_rate: float = 0.01
    b1: float | None = None
    b2: float | None = None
    eps: float | None = None
    weight_decay: float | None = None
    name: ClassVar[str] = "adamw"


Optimizer = SGD | Momentum | Adam | AdamW
