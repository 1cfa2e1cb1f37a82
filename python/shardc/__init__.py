"""shardc for Python: compiles sharded models and trains them with NumPy arrays.

docs/Python.md introduces the module. Its names are loaded when they are used:
`shardc.jax`, which only writes files, needs no compiled code.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardc._compile import Model, compile, mlp
    from shardc._errors import CompileError, Error, InputError, Message, RunError
    from shardc._executor import Executor, StepResult
    from shardc._optimizers import SGD, Adam, AdamW, Momentum
    from shardc._plan import Collective, Plan, Report, Sharding
    from shardc._train import Evaluation, Record, evaluate, fit, predict, train

_PLACES = {
    "_compile": ("Model", "compile", "mlp"),
    "_errors": ("CompileError", "Error", "InputError", "Message", "RunError"),
    "_executor": ("Executor", "StepResult"),
    "_optimizers": ("SGD", "Adam", "AdamW", "Momentum"),
    "_plan": ("Collective", "Plan", "Report", "Sharding"),
    "_train": ("Evaluation", "Record", "evaluate", "fit", "predict", "train"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'shardc' has no attribute {name!r}")
    return getattr(importlib.import_module(f"shardc.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
