"""JAX programs for shardc: run them, or export them as one text file.

The file goes to shardc-run, shardc-compile and shardc-opt (docs/JAX.md). Only
`jit` and `explain` need the compiled code of shardc."""

import importlib

from shardc.jax._export import export_loss
from shardc.jax._optimizers import adam, adamw, sgd
from shardc.jax._places import ExportError
from shardc.jax._step import export

_LATER = {"Array": "_array", "Step": "_jit", "explain": "_jit", "jit": "_jit"}
__all__ = ["Array", "ExportError", "Step", "adam", "adamw", "explain", "export",
           "export_loss", "jit", "sgd"]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'shardc.jax' has no attribute {name!r}")
    return getattr(importlib.import_module(f"shardc.jax.{_LATER[name]}"), name)
