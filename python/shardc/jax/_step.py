"""Whole train steps: forward, backward and update as JAX has them."""

import dataclasses

import numpy as np

import jax

from shardc.jax._calls import Call
from shardc.jax._evaluate import lower_in_global_form
from shardc.jax._export import _names, _sharding, distinct
from shardc.jax._functional import functional
from shardc.jax._jaxprs import has_shard_map, keeping_unused, lower
from shardc.jax._keys import is_key, to_signed
from shardc.jax._optimizers import number
from shardc.jax._places import ExportError, of_the_user
from shardc.jax._text import to_text


@dataclasses.dataclass(frozen=True)
class Argument:
    """A leaf of the arguments. `role` is "parameter", "state" or "input"; `path`
    is that in the Python program, params['w'], and `name` that in the model."""

    name: str
    path: str
    role: str
    value: object


@dataclasses.dataclass(frozen=True)
class TracedStep:
    """A step as text, and the leaves of its arguments and results.

    A result has the name of the argument that it replaces, or one of its own, and a
    type of JAX."""

    text: str
    argument_names: tuple
    arguments: tuple
    results: tuple
    result_types: tuple
    in_tree: object
    out_tree: object
    call: Call
    #: Of objects of Flax NNX and Equinox, or None.
    objects: object


def _as_array(leaf):
    """`leaf`, or a number as the array that JAX makes of it."""
    if hasattr(leaf, "dtype"):
        return leaf
    values = np.asarray(leaf)
    return values.astype(jax.dtypes.canonicalize_dtype(values.dtype))


def _starts_alike(leaf):
    values = to_signed(leaf)
    return values.size > 0 and not np.any(values != values.flat[0])


def _role_of(leaf, is_parameter, with_states):
    """The role of a carried array. Those with numbers that differ at the start are
    parameters, which have their values from a file; integers are always states."""
    if not jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating):
        return "state"
    is_state = not is_parameter and (not with_states or _starts_alike(leaf))
    return "state" if is_state else "parameter"


def _constant(argument):
    """The initialiser of a state, whose elements are equal, or come from a file."""
    if not _starts_alike(argument.value):
        return "constant(0.0)"
    return f"constant({number(to_signed(argument.value).flat[0])})"


def _result_names(outputs, carry, groups):
    """The names of all leaves of the results: of the argument that one replaces,
    "loss", or the path of any other, which is a metric; and the place of the loss among
    them. The loss is the scalar of this name, or else the first one; None without any.
    It has another name besides if it is not of float32."""
    taken = {each.name for group in groups for each in group}
    others = [(index, name or f"result{index}", leaf)
              for index, output in enumerate(outputs) if index not in carry
              for name, leaf in zip(_names(output, ""), jax.tree.leaves(output))]
    scalars = [each for each in others
               if each[2].shape == () and jax.numpy.issubdtype(each[2].dtype, np.floating)]
    loss = next((each for each in scalars if each[1] == "loss"), None) or \
        next(iter(scalars), None)
    is_own = loss is not None and loss[2].dtype == np.float32
    names, place = [], None
    for index in range(len(outputs)):
        if index in carry:
            names += [each.name for each in groups[carry[index]]]
        for each in others:
            if each[0] != index:
                continue
            if each is loss:
                place = len(names)
            name = "loss" if each is loss and is_own else each[1]
            if name in taken or (name == "loss" and not (each is loss and is_own)):
                name = f"results.{name}"
            names.append(name)
    return names, place


def _type_of(leaf):
    return leaf.dtype if is_key(leaf.dtype) else jax.dtypes.canonicalize_dtype(leaf.dtype)


def _carried(lowered, call, args, carry):
    """For each carried result the argument that it replaces."""
    outputs = lowered.out_info
    if not isinstance(outputs, tuple):
        outputs = (outputs,)
    if carry is not None and not isinstance(carry, dict):
        raise ExportError(f"carry: {carry!r} found, expected a dictionary of results and the "
                          "arguments that they replace, carry={0: 0, 1: 1}")
    if carry is None:
        infos, keywords = lowered.args_info
        infos = [*infos, *(keywords[name] for name in sorted(keywords))]
        donated = [index for index, info in enumerate(infos)
                   if all(leaf.donated for leaf in jax.tree.leaves(info))]
        carry = dict(enumerate(donated))
    else:
        places = {result: call.index_of(argument) for result, argument in carry.items()}
        carry = {result: carry[result] if place is None else place
                 for result, place in places.items()}
    if not carry:
        raise ExportError("which results replace which arguments? Expected "
                          "jax.jit(step, donate_argnums=(0, 1)) or carry={0: 0, 1: 1}")
    for result, argument in carry.items():
        if result not in range(len(outputs)) or argument not in range(len(args)):
            raise ExportError(f"carry: there is no result {result} or no argument "
                              f"{argument}; the step has {len(args)} arguments and "
                              f"{len(outputs)} results")
        # JAX takes float64 of NumPy as float32, unless jax_enable_x64 is set.
        ours = [(leaf.shape, _type_of(leaf))
                for leaf in jax.tree.leaves(args[argument])]
        theirs = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(outputs[result])]
        if ours != theirs:
            raise ExportError(f"carry: result {result} does not have the arrays "
                              f"of argument {argument}: {theirs}, expected {ours}")
    return outputs, carry


def _abstract(leaf):
    """What tracing needs of an array. Devices do not matter, shardings do."""
    if is_key(getattr(leaf, "dtype", None)):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if isinstance(leaf, jax.Array):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_sharding(leaf),
                                    weak_type=getattr(leaf, "weak_type", False))
    if not isinstance(leaf, np.ndarray) and hasattr(leaf, "__jax_array__"):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return leaf


def _used(lowered, count):
    """Which leaves of the arguments are arguments of the text."""
    try:
        kept = lowered._lowering.compile_args["kept_var_idx"]
    except (AttributeError, KeyError, TypeError):
        return [True] * count
    return [index in kept for index in range(count)]


def paths_of(args, names):
    """The path of each leaf in the Python program, with the name of its argument."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tuple(args))
    for (index, *inner), _ in leaves:
        name = names[index.idx] if index.idx < len(names) else f"arg{index.idx}"
        yield name + jax.tree_util.keystr(tuple(inner))


def _arguments(args, prefixes, carry, params, with_states):
    """The leaves of the arguments, a list for each."""
    found, paths = [], paths_of(args, prefixes)
    names = [[name or prefix for name in _names(argument, "" if index == params else prefix)]
             for index, (prefix, argument) in enumerate(zip(prefixes, args))]
    names[params] = distinct(names[params], prefixes[params],
                             [name for index, each in enumerate(names) if index != params
                              for name in each])
    for index, argument in enumerate(args):
        found.append([])
        for name, leaf in zip(names[index], jax.tree.leaves(argument)):
            role = "input" if index not in carry.values() else \
                _role_of(leaf, index == params, with_states)
            found[-1].append(Argument(name, next(paths), role, leaf))
    return found


def _role(argument, with_states):
    """The attribute of shardc for an argument."""
    if argument.role == "input":
        return f'#shardc.input<"{argument.name}">'
    is_known = argument.role == "state" and with_states
    start = _constant(argument) if is_known else "constant(0.0)"
    return f'#shardc.{argument.role}<"{argument.name}", {start}>'


def _stages(step, args, kwargs):
    """The `Traced` and the `Lowered` of a step: of a function, or of one that JAX has
    traced, lowered (then there is no `Traced`) or exported before."""
    if isinstance(step, (jax.stages.Traced, jax.stages.Lowered)):
        given = jax.tree.structure((args, kwargs))
        if given != step.in_tree:
            raise ExportError(f"the arguments are not those that the step was traced with: "
                              f"{given}, expected {step.in_tree}")
        if isinstance(step, jax.stages.Lowered):
            return None, step
        return step, lower(step)
    if not hasattr(step, "lower"):
        # An Exported of jax.export has the function so.
        step = jax.jit(step.call if hasattr(step, "mlir_module_serialized") else step)
    if not hasattr(step, "trace"):
        raise ExportError(f"{getattr(step, '__name__', 'the step')}: jax.pmap is not supported: "
                          "expected jax.jit with shardings, or jax.shard_map")
    traced = step.trace(*args, **kwargs)
    return traced, lower(traced)


@of_the_user()
def trace(step, args, carry=None, params=0, with_states=True, kwargs=None):
    """The `TracedStep` of `step` called with `args` and `kwargs`; see `export`. Without
    `with_states` the text does not have the initial values of states."""
    kwargs, function = kwargs or {}, step
    objects = functional(step, args, kwargs)
    if objects:
        step, function, call, args = objects.step, objects.function, objects.call, objects.args
        carry = objects.carry if carry is None else carry
    else:
        call = Call(step, args, kwargs)
        args = call.dynamic(args, kwargs)
    types = jax.tree.map(_abstract, args)
    traced, lowered = _stages(step, *((types, {}) if objects else call.merge(types)))
    args = jax.tree.map(_as_array, args)
    outputs, carry = _carried(lowered, call, args, carry)
    place = call.index_of(params)
    if place not in carry.values():
        raise ExportError(f"params: argument {params} is not carried; expected one of "
                          f"{sorted(call.names[each] for each in carry.values())}")
    params, prefixes = place, call.names
    groups = _arguments(args, prefixes, carry, params, with_states)
    arguments = [each for group in groups for each in group]
    by_devices = traced is not None and has_shard_map(traced.jaxpr.jaxpr)
    used = _used(lowered, len(arguments))
    must_keep = by_devices or any(each.role != "input" and not is_used
                                  for each, is_used in zip(arguments, used))
    if not all(used) and must_keep and traced and (kept := keeping_unused(traced)):
        lowered = lower(kept)
        used = _used(lowered, len(arguments))
    names, roles = [], []
    for each, is_used in zip(arguments, used):
        if not is_used and each.role != "input":
            raise ExportError(f"{each.path}: the step does not use this array, and "
                              "returns another one in its place: expected "
                              "jax.jit(step, keep_unused=True)")
        if not is_used:
            continue
        names.append(each.name)
        roles.append(_role(each, with_states))
    results, loss = _result_names(outputs, carry, groups)
    training = ("#shardc.training<loss = @loss, optimizer = <sgd, "
                "learning_rate = 0.0>>")
    header = "// A train step of JAX, exported by shardc.jax (docs/JAX.md).\n"
    program, shardings_of = lowered, None
    if by_devices:
        if not all(used):
            raise ExportError("some of the arrays of the arguments are not used: expected "
                              "jax.jit(step, keep_unused=True)")
        program, shardings_of = lower_in_global_form(traced.jaxpr), lowered
    text = to_text(program, function, names, roles, training, header, shardings_of,
                   results, loss)
    return TracedStep(text, tuple(prefixes), tuple(arguments), tuple(results),
                      tuple(leaf.dtype for leaf in jax.tree.leaves(lowered.out_info)),
                      jax.tree.structure(args), lowered.out_tree, call, objects)


def export(path, step, *args, carry=None, params=0, initial=None, **kwargs):
    """Writes a train step into the file `path`: params, states, data -> new params,
    new states, loss.

    `carry` says which result replaces which argument of the next step, by default
    the donated arguments in their order, or the objects of Flax NNX and Equinox.
    Argument `params` has the parameters. Other carried arguments are states, those
    that are not carried are data. `step` may be a function, jitted or not, or what
    jax.jit(...).trace or .lower gave, or jax.export. `initial` names a file .npz for the values of
    parameters, and of states that do not start with one value each. Of the results
    that replace nothing one is the loss, a scalar, and the others are metrics.
    Arguments may be given by name, and `carry` and `params` may name them."""
    traced = trace(step, args, carry, params, kwargs=kwargs)
    from_file = {each.name: to_signed(each.value) for each in traced.arguments
                 if each.role == "parameter" or (
                     each.role == "state" and not _starts_alike(each.value))}
    if initial is None:
        for each in traced.arguments:
            if each.role == "state" and each.name in from_file:
                raise ExportError(f"{each.path}: starts with values that differ: expected "
                                  "initial=, a file .npz for them")
    with open(path, "w", encoding="utf-8") as file:
        file.write(traced.text)
    if initial is not None:
        np.savez(initial, **from_file)
