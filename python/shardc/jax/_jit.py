"""Train steps of JAX that run under shardc, called as JAX calls them."""

import functools
import threading

import jax
import numpy as np

import shardc
from shardc._executor import to_input
from shardc.jax._array import Array, class_for
from shardc.jax._keys import has_bits, to_signed
from shardc.jax._calls import split_options
from shardc.jax._step import paths_of, trace


def _to_input(bits, label, value, dtype):
    """An array for the argument `label`; those in `bits` are unsigned, or keys."""
    return to_input(label, to_signed(value) if label in bits else value, dtype)


def _containers(tree):
    """The containers of a tree of JAX, as _core takes them; a LookupError if it takes them
    apart in another way."""
    node = tree.node_data()
    if node is None:
        return None
    kind, keys = node
    is_named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    if not is_named and kind not in (type(None), list, tuple, dict):
        raise LookupError
    if kind is dict and not all(type(key) in (str, int) for key in keys):
        raise LookupError
    if is_named:  # JAX may have been told to flatten it otherwise.
        places = list(range(tree.num_leaves))
        if [place for each in tree.unflatten(places) for place in jax.tree.leaves(each)] != places:
            raise LookupError
    return kind, keys if kind is dict else (), [_containers(child) for child in tree.children()]


def _trees(*trees):
    """Those of the arguments and the results, or None."""
    try:
        return tuple(_containers(tree) for tree in trees)
    except LookupError:
        return None


class Step:
    """A step that was compiled: call it with the arguments of the function.

    `plan` is what shardc made of it, `seconds` the time of the last step."""

    def __init__(self, traced, plan, threads):
        self.plan = plan
        self._traced = traced
        self._in_tree, self._out_tree = traced.in_tree, traced.out_tree
        self._objects = traced.objects
        self._is_plain = traced.call.is_plain and traced.objects is None
        self._executor = shardc._core.Executor(
            plan.core, seed=0, threads=threads, poison_padding=False,
            share_replicas=True, ordered_sums=False, cpu_target="")
        bits = {each.path for each in traced.arguments
                if has_bits(getattr(each.value, "dtype", None))}
        self._core = shardc._core.CarriedStep(
            self._executor, "train_step",
            [(each.name, each.path) for each in traced.arguments],
            list(traced.results), Array, [class_for(each) for each in traced.result_types],
            functools.partial(_to_input, bits), _trees(traced.in_tree, traced.out_tree))
        self._flatten = jax.tree_util.tree_flatten
        self._lock = threading.Lock()

    def __call__(self, *args, **kwargs):
        if self._is_plain and not kwargs:
            return self._call(args)
        given = args = self._traced.call.dynamic(args, kwargs)
        if not self._objects:
            return self._call(args)
        results = self._call(self._objects.unwrap(args))
        return self._objects.wrap(given, results)

    def _call(self, args):
        if not jax.config.jax_debug_nans:
            with self._lock:
                results = self._core.call_tree(args)
            if results is not NotImplemented:
                return results
        leaves, tree = self._flatten(args)
        if tree != self._in_tree:
            raise self._describe_mismatch(args)
        with self._lock:
            results = self._core.call(leaves)
        if jax.config.jax_debug_nans:
            self._refuse_nans(leaves, results)
        return self._out_tree.unflatten(results)

    def _refuse_nans(self, leaves, results):
        arguments = self._traced.arguments
        carried = {each.name for each in arguments if each.role != "input"}
        for index, (name, result) in enumerate(zip(self._traced.results, results)):
            if name in carried or not np.isnan(np.asarray(result)).any():
                continue
            of = [each.path for each, leaf in zip(arguments, leaves)
                  if each.role == "input" and not np.isfinite(to_signed(leaf)).all()]
            raise FloatingPointError(
                f"jax_debug_nans: invalid value (nan) in {name}, result {index} of the step"
                + (f"; {', '.join(of)} has a value that is not finite" if of else ""))

    def _describe_mismatch(self, args):
        expected = {each.path for each in self._traced.arguments}
        found = set(paths_of(args, self._traced.argument_names))
        differences = [f"{path} is missing" for path in sorted(expected - found)]
        differences += [f"{path} is unknown" for path in sorted(found - expected)]
        if not differences:
            differences = [f"{jax.tree.structure(args)} found, expected {self._in_tree}"]
        most = 5
        more = [f"{len(differences) - most} more"] if len(differences) > most else []
        return TypeError("the arguments are not those that the step was traced with: "
                         + ", ".join(differences[:most] + more))

    @property
    def seconds(self):
        return self._core.seconds

    def explain(self):
        """Why the step communicates, with lines of the Python program."""
        return self.plan.explain()

    def __repr__(self):
        return f"<shardc.jax.Step of {self.plan!r}>"


def _compile(step, args, carry, params, options):
    kwargs, options = split_options(step, options)
    traced = trace(step, args, carry, params, with_states=False, kwargs=kwargs)
    name = getattr(step, "__name__", "step")
    return traced, shardc.compile(shardc.Model(traced.text, f"{name}.mlir"), **options)


def jit(step, *args, carry=None, params=0, threads=0, **options):
    """Compiles `step` for arguments like `args`; returns the function to call.

    The step is traced as JAX does it. `carry` says which result replaces which
    argument of the next call, by default the donated arguments in their order.
    Such results stay with shardc while they are handed back. `params` is the
    argument that has the parameters. Both may name arguments. Of `options` those that
    are parameters of the step are its arguments, the others those of shardc.compile;
    `threads=0` takes as many as the process may use.

    A step of nnx.jit changes the objects that it is called with, and one of
    eqx.filter_jit gives modules, as without shardc."""
    return Step(*_compile(step, args, carry, params, options), threads)


def explain(step, *args, carry=None, params=0, **options):
    """Why a step would communicate, with lines of the Python program, and what
    changes that. Arguments are those of `jit`."""
    return _compile(step, args, carry, params, options)[1].explain()
