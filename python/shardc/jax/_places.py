"""Places in the user's program, for errors and for the locations of what is traced
anew."""

import contextlib
import os
import sys

try:
    from jax._src import source_info_util

    # As JAX leaves out its own frames.
    source_info_util.register_exclusion(os.path.dirname(__file__) + os.sep)
except (AttributeError, ImportError):  # The locations of the program are lost then.
    source_info_util = None


#: Packages on top of JAX, whose lines are not those of the user.
_LIBRARIES = ("chex", "equinox", "flax", "optax")


@contextlib.contextmanager
def of_the_user():
    """A context in which what is traced and lowered has the places where the user calls
    libraries on top of JAX, not places in these."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _LIBRARIES]
    own = [os.path.dirname(file) + os.sep for file in files if file]
    excluded = getattr(source_info_util, "_exclude_paths", None)
    if excluded is None:
        yield
        return
    for path in own:
        source_info_util.register_exclusion(path)
    try:
        yield
    finally:
        for path in own:
            excluded.remove(path)
        source_info_util.register_exclusion(excluded.pop())  # Forgets what it knew.


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
