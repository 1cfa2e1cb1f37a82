"""Optimizers, with the hyper-parameters and defaults of optax."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SGD:
    learning_rate: float = 0.01
    weight_decay: float | None = None
    name = "sgd"


@dataclass(frozen=True)
class Momentum:
    learning_rate: float = 0.01
    momentum: float | None = None
    weight_decay: float | None = None
    name = "momentum"


@dataclass(frozen=True)
class Adam:
    learning_rate: float = 0.01
    weight_decay: float | None = None
    name = "adam"


@dataclass(frozen=True)
class AdamW:
    learning_rate: float = 0.01
    weight_decay: float | None = None
    name = "adamw"


Optimizer = SGD | Momentum | Adam | AdamW
