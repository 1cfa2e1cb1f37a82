"""Errors of the compiler and of the runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Error(Exception):
    """The base of shardc's errors."""


@dataclass(frozen=True)
class Message:
    """An error, a warning, a remark or a note of the compiler.

    `line` and `column` count from 1; `file` is "" and they are 0 without a place.
    """

    severity: str
    file: str
    line: int
    column: int
    text: str
    notes: tuple[Message, ...] = ()

    @classmethod
    def from_json(cls, json: dict[str, Any]) -> Message:
        notes = tuple(cls.from_json(note) for note in json["notes"])
        return cls(json["severity"], json["file"], json["line"], json["column"], json["text"], notes)


class CompileError(Error):
    """A model or an option that the compiler refuses.

    `file`, `line`, `column` and `notes` are those of the first error, `messages` has
    all, and `code` is the exit code of the command line: 4 for lack of memory.
    """

    def __init__(self, diagnostics: str, messages: tuple[Message, ...], code: int):
        super().__init__(diagnostics.strip())
        first = next((each for each in messages if each.severity == "error"), None)
        self.messages = messages
        self.code = code
        self.file = first.file if first else ""
        self.line = first.line if first else 0
        self.column = first.column if first else 0
        self.notes: tuple[Message, ...] = first.notes if first else ()


class RunError(Error, RuntimeError):
    """An error of the runtime; `code` is that of Abseil, "NOT_FOUND" for example."""

    def __init__(self, message: str, code: str):
        super().__init__(message)
        self.code = code


class InputError(RunError, ValueError):
    """A value that does not fit the plan."""


_CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE "
    "UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()


def from_status(code: int, message: str) -> RunError:
    """The exception for an error of the runtime."""
    name = _CODES[code]
    kind = InputError if name == "INVALID_ARGUMENT" else RunError
    return kind(message, name)
