"""Steps of Flax NNX and Equinox as functions of pytrees of arrays.

Functions of nnx.jit change the objects that they are given, and those of
eqx.filter_jit take and give pytrees with leaves that are no arrays. Neither package
is imported here: a program that uses it has done so."""

import sys

import jax

from shardc.jax._calls import Call, is_array


def _arrays(tree):
    """`tree` with None, which is no leaf, in place of all else."""
    return jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, tree)


class _Nnx:
    """A step of nnx.jit: objects become their arrays, and the new arrays come first
    among the results."""

    def __init__(self, nnx, step, args, kwargs):
        self._nnx = nnx
        self.function = getattr(step, "fun", step)
        self.call = Call(step, args, kwargs, self.function)
        objects = self.call.dynamic(args, kwargs)
        self._numbers = [index for index, each in enumerate(objects)
                         if isinstance(each, nnx.Pytree)]
        self.args = self.unwrap(objects)
        self.carry = dict(enumerate(self._numbers))
        self._graph, self._state = nnx.split(tuple(objects[index] for index in self._numbers))
        self._is_tuple, self._is_none = True, False

    def _split(self, objects):
        _, state = self._nnx.split(tuple(objects))
        return [self._nnx.to_pure_dict(state[place]) for place in range(len(self._numbers))]

    def step(self, *args):
        """The step as a function of arrays."""
        values = jax.tree.map(lambda leaf: leaf, self._state)
        self._nnx.replace_by_pure_dict(values, {place: args[index] for place, index
                                                in enumerate(self._numbers)})
        objects = dict(zip(self._numbers, self._nnx.merge(self._graph, values)))
        args, kwargs = self.call.merge(objects.get(index, arg)
                                       for index, arg in enumerate(args))
        out = self.function(*args, **kwargs)
        self._is_none, self._is_tuple = out is None, isinstance(out, tuple)
        rest = () if out is None else out if isinstance(out, tuple) else (out,)
        return (*self._split(objects.values()), *rest)

    def unwrap(self, args):
        """The arguments with the arrays of objects in place of these."""
        arrays = dict(zip(self._numbers, self._split(args[index] for index in self._numbers)))
        return tuple(arrays.get(index, arg) for index, arg in enumerate(args))

    def wrap(self, args, results):
        """What the step gives; the objects among `args` have their new arrays then."""
        for index, arrays in zip(self._numbers, results):
            state = self._nnx.state(args[index])
            self._nnx.replace_by_pure_dict(state, arrays)
            self._nnx.update(args[index], state)
        rest = results[len(self._numbers):]
        return None if self._is_none else rest if self._is_tuple else rest[0]


class _Equinox:
    """A step of eqx.filter_jit: what is no array among the arguments belongs to the
    function."""

    def __init__(self, equinox, step, args, kwargs):
        self._equinox = equinox
        self.function = getattr(step, "__wrapped__", step)
        self.call = Call(step, args, kwargs, self.function)
        given = self.call.dynamic(args, kwargs)
        self.args = self.unwrap(given)
        self._static = jax.tree.map(lambda leaf: None if is_array(leaf) else leaf, given)
        self._static_results = None
        self.carry = self._find_carry(jax.eval_shape(self.step, *self.args))

    def _find_carry(self, outputs):
        """Trees of arrays that a result and an argument have alike. An array alone may
        be anything."""
        def form(tree):
            leaves, structure = jax.tree.flatten(tree)
            return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]

        carry = {}
        left = {index: form(arg) for index, arg in enumerate(self.args)
                if not is_array(arg) and jax.tree.leaves(arg)}
        for place, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
            found = next((index for index, each in left.items() if each == form(output)), None)
            if found is not None:
                carry[place] = found
                del left[found]
        return carry

    def step(self, *args):
        """The step as a function of arrays."""
        args, kwargs = self.call.merge(self._equinox.combine(args, self._static))
        results = self.function(*args, **kwargs)
        self._static_results = jax.tree.map(
            lambda leaf: None if is_array(leaf) else leaf, results)
        return _arrays(results)

    def unwrap(self, args):
        """The arguments with None in place of what is no array."""
        return _arrays(tuple(args))

    def wrap(self, args, results):
        """What the step gives: modules are whole again."""
        return self._equinox.combine(results, self._static_results)


def functional(step, args, kwargs):
    """A step of nnx.jit or eqx.filter_jit as one of pytrees of arrays, or None for any
    other step. It has the `step`, its `args`, which results replace which of them
    (`carry`), the `function` of the user, the form of its `call`s, and `unwrap` and
    `wrap` for arguments and results."""
    nnx, equinox = sys.modules.get("flax.nnx"), sys.modules.get("equinox")
    given = (args, kwargs)
    if nnx and any(isinstance(leaf, nnx.Pytree) for leaf in (*args, *kwargs.values())):
        return _Nnx(nnx, step, args, kwargs)
    if equinox and any(isinstance(leaf, equinox.Module) for leaf in jax.tree.leaves(
            given, is_leaf=lambda leaf: isinstance(leaf, equinox.Module))):
        return _Equinox(equinox, step, args, kwargs)
    return None
