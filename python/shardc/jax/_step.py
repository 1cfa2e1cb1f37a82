"""Export of whole train steps: forward, backward and update as JAX has them."""

import inspect

import numpy as np

import jax

from shardc.jax._evaluate import lower_in_global_form
from shardc.jax._export import _names
from shardc.jax._jaxprs import has_shard_map
from shardc.jax._optimizers import number
from shardc.jax._places import ExportError
from shardc.jax._text import to_text


def _argument_names(step, count):
    try:
        names = list(inspect.signature(step).parameters)
    except (TypeError, ValueError):
        names = []
    return names if len(names) == count else [f"arg{i}" for i in range(count)]


def _constant(name, leaf):
    """The initialiser of a state, whose elements are equal."""
    values = np.asarray(leaf)
    if values.size == 0 or np.any(values != values.flat[0]):
        raise ExportError(f"{name}: a state that starts with values that differ "
                          "is not supported; expected zeros, as optax has")
    return f"constant({number(values.flat[0])})"


def _carried(lowered, args, carry):
    """For each carried result the argument that it replaces."""
    outputs = lowered.out_info
    if not isinstance(outputs, tuple):
        outputs = (outputs,)
    if carry is None:
        infos, _ = lowered.args_info
        donated = [index for index, info in enumerate(infos)
                   if all(leaf.donated for leaf in jax.tree.leaves(info))]
        carry = dict(enumerate(donated))
    if not carry:
        raise ExportError("which results replace which arguments? Expected "
                          "jax.jit(step, donate_argnums=(0, 1)) or carry={0: 0, 1: 1}")
    for result, argument in carry.items():
        ours = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(args[argument])]
        theirs = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(outputs[result])]
        if ours != theirs:
            raise ExportError(f"carry: result {result} does not have the arrays "
                              f"of argument {argument}: {theirs}, expected {ours}")
    return outputs, carry


def export(path, step, *args, carry=None, params=0, initial=None):
    """Writes a train step into the file `path`: params, states, data -> new params,
    new states, loss.

    `carry` says which result replaces which argument of the next step, by default
    the donated arguments in their order. Argument `params` has the parameters, and
    `initial` names a file .npz for their values. Other carried arguments are
    states, those that are not carried are data; the result that replaces nothing
    is the loss."""
    if not hasattr(step, "lower"):
        donated = tuple((carry or {}).values())
        step = jax.jit(step, donate_argnums=donated, keep_unused=True)
    traced = step.trace(*args)
    lowered = traced.lower()
    args = jax.tree.map(lambda x: x if hasattr(x, "dtype") else np.asarray(x), args)
    outputs, carry = _carried(lowered, args, carry)
    prefixes = _argument_names(step, len(args))
    names, roles, of_argument = [], [], []
    for index, (prefix, argument) in enumerate(zip(prefixes, args)):
        is_parameter = index == params
        found = _names(argument, "" if is_parameter else prefix)
        found = [name or prefix for name in found]
        of_argument.append(found)
        for name, leaf in zip(found, jax.tree.leaves(argument)):
            if index not in carry.values():
                roles.append(f'#shardc.input<"{name}">')
            elif is_parameter:
                roles.append(f'#shardc.parameter<"{name}", constant(0.0)>')
            else:
                roles.append(f'#shardc.state<"{name}", {_constant(name, leaf)}>')
        names += found
    results = []
    for index, output in enumerate(outputs):
        if index in carry:
            results += of_argument[carry[index]]
        elif getattr(output, "shape", None) == () and "loss" not in results:
            results.append("loss")
        else:
            raise ExportError(f"result {index} is neither carried nor the loss, a "
                              "scalar; other results are not supported")
    main_arguments = len(jax.tree.leaves(args))
    training = ("#shardc.training<loss = @loss, optimizer = <sgd, "
                "learning_rate = 0.0>>")
    header = "// A train step of JAX, exported by shardc.jax (docs/JAX.md).\n"
    program, shardings_of = lowered, None
    if has_shard_map(traced.jaxpr.jaxpr):
        program, shardings_of = lower_in_global_form(traced.jaxpr), lowered
    try:
        text = to_text(program, step, names, roles, training, header, results,
                       shardings_of)
    except ValueError as error:
        raise ExportError(f"some of the {main_arguments} arrays of the arguments "
                          "are not used: expected jax.jit(step, keep_unused=True)"
                          ) from error
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if initial is not None:
        np.savez(initial, **dict(zip(of_argument[params],
                                     map(np.asarray, jax.tree.leaves(args[params])))))
