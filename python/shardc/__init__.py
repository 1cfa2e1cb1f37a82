"""shardc for Python: compiles sharded models and trains them with NumPy arrays.

docs/Python.md introduces the module. Its names are loaded when they are used:
`shardc.jax`, which only writes files, needs no compiled code.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # `as` makes them names of this module for type checkers.
    from shardc._compile import Model as Model
    from shardc._compile import compile as compile
    from shardc._compile import mlp as mlp
    from shardc._errors import CompileError as CompileError
    from shardc._errors import Error as Error
    from shardc._errors import InputError as InputError
    from shardc._errors import Message as Message
    from shardc._errors import RunError as RunError
    from shardc._executor import Executor as Executor
    from shardc._executor import StepResult as StepResult
    from shardc._optimizers import SGD as SGD
    from shardc._optimizers import Adam as Adam
    from shardc._optimizers import AdamW as AdamW
    from shardc._optimizers import Momentum as Momentum
    from shardc._plan import Collective as Collective
    from shardc._plan import Plan as Plan
    from shardc._plan import Report as Report
    from shardc._plan import Sharding as Sharding
    from shardc._train import Evaluation as Evaluation
    from shardc._train import Record as Record
    from shardc._train import evaluate as evaluate
    from shardc._train import fit as fit
    from shardc._train import predict as predict
    from shardc._train import train as train

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
