"""JAX programs for shardc: export a loss function as one text file.

The file goes to shardc-run, shardc-compile and shardc-opt (docs/JAX.md)."""

from shardc.jax._export import export_loss
from shardc.jax._step import export
from shardc.jax._optimizers import adam, adamw, sgd
from shardc.jax._places import ExportError

__all__ = ["ExportError", "adam", "adamw", "export", "export_loss", "sgd"]
