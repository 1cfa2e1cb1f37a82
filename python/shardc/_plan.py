"""Plans and what they say about themselves."""

from __future__ import annotations

import functools
import html
import json
import os
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from shardc import _core
from shardc._errors import Message


@dataclass(frozen=True)
class Collective:
    """A collective of a step; bytes are those of a device."""

    kind: str
    axes: tuple[str, ...]
    group_size: int
    bytes: int
    wire_bytes: int
    runs: int
    microseconds: float
    part: str
    source: str
    cause: str
    rank: int | None = None


@dataclass(frozen=True)
class Sharding:
    """A tensor, and the axes of the mesh that shard each of its dimensions."""

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    sharding: tuple[tuple[str, ...], ...]
    local_shape: tuple[int, ...]
    bytes: int
    #: The sizes of the axes.
    mesh: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def _repr_html_(self) -> str:
        """For notebooks: a grid, one color for each shard."""
        return _to_table([self])

    def _draw(self) -> str:
        counts = [1, 1]
        for dim, axes in enumerate(self.sharding):
            for axis in axes:
                counts[min(dim, 1)] *= self.mesh.get(axis, 1)
        rows, columns = (min(count, 64) for count in counts)
        width, height = 96 // columns, max(4, 48 // rows)
        cells = "".join(
            f'<rect x="{column * width}" y="{row * height}" width="{width}" height="{height}" '
            f'stroke="white" fill="hsl({360 * (row * columns + column) // (rows * columns)},60%,60%)"/>'
            for row in range(rows)
            for column in range(columns)
        )
        text = ", ".join("×".join(axes) or "·" for axes in self.sharding)
        return (
            f'<svg width="{width * columns}" height="{height * rows}"><title>{html.escape(text)}'
            f"</title>{cells}</svg> {html.escape(text)}"
        )


def _to_table(shardings: Iterable[Sharding]) -> str:
    rows = "".join(f"<tr><td>{html.escape(each.name)}</td><td>{each.role}</td>"
                   f"<td>{each.dtype}{list(each.shape)}</td><td>{each._draw()}</td></tr>"
                   for each in shardings)  # fmt: skip
    return f"<table><tr><th>tensor</th><th>role</th><th>type</th><th>shards</th></tr>{rows}</table>"


@dataclass(frozen=True)
class Report:
    """The costs of a step. `json` is all that `shardc-compile --json` prints."""

    model: str
    mesh: dict[str, int]
    num_devices: int
    batch_size: int
    peak_bytes_per_device: int
    wire_bytes_per_device: int
    matmul_flops_per_device: int
    microseconds: float | None
    memory: dict[str, int]
    json: dict[str, Any]


class Plan:
    """A compiled model. Immutable; executors may share one."""

    def __init__(
        self,
        data: bytes,
        report: bytes,
        messages: tuple[Message, ...] = (),
        explainer: Callable[[], str] | None = None,
    ):
        self.bytes = data
        self.messages = messages
        self._report = report
        self._explainer = explainer

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        from shardc._compile import _check, compiler

        output = compiler().describe_plan(pathlib.Path(path).read_bytes())
        _check(output)
        text = output.explanation.decode(errors="replace")
        return cls(output.bytes, output.report, (), lambda: text)

    def save(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).write_bytes(self.bytes)

    @functools.cached_property
    def core(self) -> _core.Plan:
        return _core.Plan.parse(self.bytes)

    @functools.cached_property
    def _json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._report)
        return found

    @property
    def report(self) -> Report:
        found = self._json
        names = ("model", "mesh", "num_devices", "batch_size", "peak_bytes_per_device")
        totals = ("wire_bytes_per_device", "matmul_flops_per_device")
        memory = {name: size for name, size in found["memory"].items() if isinstance(size, int)}
        return Report(
            **{name: found[name] for name in names},
            **{name: found.get(name, 0) for name in totals},
            microseconds=found.get("time", {}).get("microseconds"),
            memory=memory,
            json=found,
        )

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Those of a train step, in its order."""
        lines = self._json.get("collectives", ())
        return tuple(Collective(**{**line, "axes": tuple(line["axes"])}) for line in lines)

    @property
    def shardings(self) -> tuple[Sharding, ...]:
        return tuple(
            Sharding(
                **{
                    **line,
                    "shape": tuple(line["shape"]),
                    "local_shape": tuple(line["local_shape"]),
                    "sharding": tuple(tuple(axes) for axes in line["sharding"]),
                    "mesh": self._json["mesh"],
                }
            )
            for line in self._json["shardings"]
        )

    def explain(self) -> str:
        """Why each collective is there, and changes of the model that remove it."""
        return self._explainer() if self._explainer else ""

    def __repr__(self) -> str:
        report = self.report
        mesh = ",".join(f"{name}={size}" for name, size in report.mesh.items())
        return (
            f"<shardc.Plan {report.model} on {mesh}: {len(self.collectives)} collectives, "
            f"{report.wire_bytes_per_device} bytes on the wire per device and step>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: each tensor as a grid, one color for each of its shards."""
        return f"<p>{html.escape(repr(self))}</p>{_to_table(self.shardings)}"
