"""Training over data sets, in the order of rows that shardc-run has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shardc import _core
from shardc._compile import FOLDER
from shardc._executor import Executor

Data: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


@dataclass(frozen=True)
class Record:
    """The steps since the record before: `loss` is their mean."""

    step: int
    epoch: int
    steps: int
    loss: float
    last_loss: float
    seconds: float
    samples_per_second: float


@dataclass(frozen=True)
class Evaluation:
    """Over all rows; `correct` is None if the model has no notion of it."""

    rows: int
    loss: float
    correct: int | None

    @property
    def accuracy(self) -> float | None:
        return None if self.correct is None else self.correct / self.rows


def _to_array(value: Any) -> Any:
    array = np.ascontiguousarray(value)
    if array.dtype.kind in "iu" and array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _load(data: Data, seed: int) -> _core.Dataset:
    if isinstance(data, Mapping):
        return _core.Dataset.from_arrays({name: _to_array(value) for name, value in data.items()})
    return _core.Dataset.load(os.fspath(data), str(FOLDER), seed)


def train(
    executor: Executor,
    data: Data,
    *,
    epochs: int = 1,
    every: int | None = None,
    seed: int = 0,
    shuffle: bool = True,
    progress: bool = False,
) -> Iterator[Record]:
    """Trains on `data`: arrays by name, or what shardc-run's --data takes.

    Gives a record for each epoch, or for each `every` steps; parameters are those of
    the record's step. With `progress`, and tqdm, a bar shows the steps.
    """
    training = _core.Training(executor.core, _load(data, seed), seed=seed, shuffle=shuffle)
    left = epochs * training.steps_per_epoch
    bar = _make_bar(left) if progress else None
    done = 0
    try:
        while left > 0:
            count = min(left, every or training.steps_per_epoch)
            base = done
            report = (lambda steps: bar.update(base + steps - bar.n)) if bar else None
            record = training.advance(count, report)
            done, left = done + record.steps, left - count
            if bar:
                bar.update(done - bar.n)
            yield Record(**{name: getattr(record, name) for name in Record.__dataclass_fields__})
    finally:
        if bar:
            bar.close()


def _make_bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit="step")


def fit(executor: Executor, data: Data, **options: Any) -> list[Record]:
    """All records of `train`."""
    return list(train(executor, data, **options))


def evaluate(executor: Executor, data: Data) -> Evaluation:
    """The loss over all rows of `data`, and how many are right."""
    rows, loss, correct = executor.core.evaluate(_load(data, 0))
    return Evaluation(rows, loss, None if correct < 0 else correct)
