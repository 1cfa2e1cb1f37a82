"""Lines of results: printed as a table, written as JSON."""

from dataclasses import asdict, dataclass
from typing import Optional


def duration(seconds):
    for unit, size in ("s", 1), ("ms", 1e-3), ("µs", 1e-6):
        if seconds >= 0.9995 * size:  # three digits do not round to the next unit
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def number(value, unit):
    if unit == "s":
        return duration(value)
    if unit == "B":
        return f"{value / 1e6:.4g} MB"
    if unit == "B/s":
        return f"{value / 1e9:.3g} GB/s"
    return f"{value:.3g} {unit}".strip()


@dataclass
class Line:
    workload: str
    peer_name: str
    ours: Optional[float]
    peer: Optional[float]
    unit: str
    """The number compared with the goal; None: there is no peer here."""
    ratio: Optional[float]
    goal: float
    """Whether the ratio is to be at least the goal, or else at most."""
    at_least: bool
    """The distance to the limit of this computer, in words."""
    limit: str = ""
    """Why there is no ratio."""
    note: str = ""
    """Of what failed."""
    error: str = ""
    """What grows, and how many times as large it is: for plot_growth.py."""
    series: str = ""
    factor: Optional[int] = None

    def per_flop(self, ours, peer):
        """Makes times of steps that have so many FLOPs times of one."""
        self.unit = "ps/FLOP"
        self.ours = self.ours and self.ours / ours * 1e12
        self.peer = self.peer and self.peer / peer * 1e12
        self.ratio = self.ratio and self.ratio * peer / ours

    @property
    def met(self):
        if self.error:
            return False
        if self.ratio is None:
            return None
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal

    def cells(self):
        """As many as HEADINGS."""
        suffix = "x" if self.peer is not None or self.peer_name else f" {self.unit}"
        shown = lambda value: "-" if value is None else number(value, self.unit)
        ratio = "-" if self.ratio is None else f"{self.ratio:.3g}x" if self.peer_name else shown(self.ratio)
        goal = f"{self.goal:g}x" if self.peer_name else number(self.goal, self.unit)
        verdict = "FAILED" if self.error else {True: "met", False: "MISSED", None: "no peer"}[self.met]
        return [self.workload, self.peer_name or "-", shown(self.peer), shown(self.ours), ratio,
                ("≥ " if self.at_least else "≤ ") + goal, verdict, " ".join(self.error.split()) or self.limit or self.note]  # fmt: skip

    def json(self):
        return {**asdict(self), "met": self.met}


HEADINGS = ["workload", "peer", "peer's", "ours", "ratio", "goal", "result", "limit of the machine"]
WIDTHS = [50, 29, 13, 13, 8, 8, 7, 0]


def row(cells):
    aligned = (cell.rjust(width) if 2 <= i <= 5 else cell.ljust(width) for i, (cell, width) in enumerate(zip(cells, WIDTHS)))
    return "  ".join(aligned).rstrip()
