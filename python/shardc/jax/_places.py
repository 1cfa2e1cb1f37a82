"""Places in the user's program, for errors and for the locations of what is traced
anew."""

import contextlib
import os

try:
    from jax._src import source_info_util

    # As JAX leaves out its own frames.
    source_info_util.register_exclusion(os.path.dirname(__file__) + os.sep)
except (AttributeError, ImportError):  # The locations of the program are lost then.
    source_info_util = None


class ExportError(ValueError):
    """A program that shardc cannot take, with the place in it."""


def where(eqn):
    """The place of an equation in the user's program."""
    if source_info_util is None:
        return "?"
    return source_info_util.summarize(eqn.source_info)


def at(eqn, outer=None):
    """A context in which ops have the place and the name of `eqn`, which is inside of
    the equation `outer`."""
    if source_info_util is None:
        return contextlib.nullcontext()
    names = eqn.source_info.name_stack
    if outer is not None:
        names = outer.source_info.name_stack + names
    return source_info_util.user_context(eqn.source_info.traceback, name_stack=names)
