"""Steps of Flax NNX and Equinox as functions of pytrees of arrays.

Functions of nnx.jit change the objects that they are given, and those of
eqx.filter_jit take and give pytrees with leaves that are no arrays. Neither package
is imported here: a program that uses it has done so."""

import sys

import jax
import numpy as np


def _is_array(leaf):
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def _arrays(tree):
    """`tree` with None, which is no leaf, in place of all else."""
    return jax.tree.map(lambda leaf: leaf if _is_array(leaf) else None, tree)


def _from_nnx(nnx, step, args):
    """The objects among the arguments become their arrays, and the new ones come
    first among the results."""
    numbers = [index for index, arg in enumerate(args) if isinstance(arg, nnx.Pytree)]
    function = getattr(step, "fun", step)
    graph, state = nnx.split(tuple(args[index] for index in numbers))

    def split(objects):
        _, state = nnx.split(tuple(objects))
        return [nnx.to_pure_dict(state[place]) for place in range(len(numbers))]

    def functional(*args):
        values = jax.tree.map(lambda leaf: leaf, state)
        nnx.replace_by_pure_dict(values, {place: args[index]
                                          for place, index in enumerate(numbers)})
        objects = dict(zip(numbers, nnx.merge(graph, values)))
        out = function(*(objects.get(index, arg) for index, arg in enumerate(args)))
        rest = () if out is None else out if isinstance(out, tuple) else (out,)
        return (*split(objects.values()), *rest)

    replaced = dict(zip(numbers, split(args[index] for index in numbers)))
    arrays = tuple(replaced.get(index, arg) for index, arg in enumerate(args))
    return functional, arrays, dict(enumerate(numbers)), function


def _from_equinox(equinox, step, args):
    """What is no array among the arguments belongs to the function."""
    arrays = _arrays(args)
    static = jax.tree.map(lambda leaf: None if _is_array(leaf) else leaf, args)
    function = getattr(step, "__wrapped__", step)

    def functional(*args):
        return _arrays(function(*equinox.combine(args, static)))

    outputs = jax.eval_shape(functional, *arrays)
    shapes = lambda tree: [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]
    carry = {}
    for index, (output, arg) in enumerate(zip(outputs, arrays)):
        if not shapes(arg) or shapes(output) != shapes(arg):
            break
        carry[index] = index
    return functional, arrays, carry, function


def functional(step, args):
    """(step, arguments, carry, function): `step` of nnx.jit or eqx.filter_jit as a
    function of pytrees of arrays, which results replace which arguments, and the
    function of the user. None for any other step."""
    nnx, equinox = sys.modules.get("flax.nnx"), sys.modules.get("equinox")
    if nnx and any(isinstance(arg, nnx.Pytree) for arg in args):
        return _from_nnx(nnx, step, args)
    if equinox and any(isinstance(leaf, equinox.Module) for leaf in jax.tree.leaves(
            args, is_leaf=lambda leaf: isinstance(leaf, equinox.Module))):
        return _from_equinox(equinox, step, args)
    return None
