"""Training over data sets, in the order of rows that shardc-run has."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shardc import _core
from shardc._compile import FOLDER
from shardc._errors import InputError
from shardc._executor import Array, Executor, to_array

Data: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
Resume: TypeAlias = "bool | int | str"


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
    array = np.ascontiguousarray(to_array("data", value))
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
    seed: int | None = None,
    shuffle: bool = True,
    progress: bool = False,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    keep: int | None = None,
    resume: Resume = False,
) -> Iterator[Record]:
    """Trains on `data`: arrays by name, or what shardc-run's --data takes.

    Gives a record for each epoch, or for each `every` steps; parameters are those of
    the record's step. With `progress`, and tqdm, a bar shows the steps.

    With `checkpoint_dir` there is a checkpoint of the last step, of each
    `checkpoint_every` steps, and of `keep` of these the latest. `resume` goes on from
    the latest one (True), from that of a step (an int), or from the latest one if there
    is any ("if-any"); epochs count from the very beginning. Without `resume` a folder
    that has checkpoints is an error.
    """
    training = _core.Training(executor.core, _load(data, seed or 0), seed=seed or 0, shuffle=shuffle)
    if checkpoint_dir is not None:
        folder = os.fspath(checkpoint_dir)
        if resume is not False and _is_there(folder, resume):
            training.resume(folder, -1 if resume is True or resume == "if-any" else int(resume))
            if seed is not None and seed != training.seed:
                raise InputError(f"seed: {seed} found, and the checkpoint has {training.seed}", "INVALID_ARGUMENT")
        training.open_checkpoints(folder, checkpoint_every or 0, keep or 0, resume is not False)
    elif resume is not False or checkpoint_every or keep:
        raise InputError("resume, checkpoint_every and keep need a checkpoint_dir", "INVALID_ARGUMENT")
    return _advance(training, epochs, every, progress)


def _is_there(folder: str, resume: Resume) -> bool:
    return resume != "if-any" or any(pathlib.Path(folder).glob("step-*[0-9]"))


def _advance(training: _core.Training, epochs: int, every: int | None, progress: bool) -> Iterator[Record]:
    end = epochs * training.steps_per_epoch
    bar = _make_bar(end, training.steps) if progress else None
    try:
        while training.steps < end:
            reached = training.steps
            # A record ends with an epoch or with a multiple of `every`.
            part = every or training.steps_per_epoch
            count = min(end - reached, part - reached % part)
            report = (lambda steps: bar.update(reached + steps - bar.n)) if bar else None
            record = training.advance(count, report)
            if bar:
                bar.update(training.steps - bar.n)
            yield Record(**{name: getattr(record, name) for name in Record.__dataclass_fields__})
    finally:
        training.finish()
        if bar:
            bar.close()


def _make_bar(total: int, initial: int) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=initial, unit="step")


def fit(executor: Executor, data: Data, **options: Any) -> list[Record]:
    """All records of `train`."""
    return list(train(executor, data, **options))


def evaluate(executor: Executor, data: Data) -> Evaluation:
    """The loss over all rows of `data`, and how many are right."""
    rows, loss, correct = executor.core.evaluate(_load(data, 0))
    return Evaluation(rows, loss, None if correct < 0 else correct)


def predict(executor: Executor, data: Data) -> Array:
    """The outputs of the network for all rows of `data`, whose labels are ignored."""
    outputs: Array = executor.core.predict(_load(data, 0))
    return outputs
