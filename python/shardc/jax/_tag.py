"""Keeps the gradients that JAX gives a function, for shardc to differentiate.

Lowering to StableHLO forgets stop_gradient and custom_jvp: the text of a loss
has the value of such a function alone. This evaluates the jaxpr of a loss with
those functions as composites, which shardc knows by name."""

import jax
from jax import lax
from jax.extend import core as jex_core

try:
    from jax._src import source_info_util
except ImportError:  # The locations of the program are lost then.
    source_info_util = None

# Functions of jax.nn and jax.numpy with custom_jvp, of which the derivative of
# the plain formula is the same.
_PLAIN_DERIVATIVE = {"logaddexp", "_logaddexp", "log_softmax", "_softmax",
                     "softmax", "logsumexp", "_logaddexp2"}
_CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2",
          "checkpoint"}


class ExportError(ValueError):
    """A program that shardc cannot take, with the place in it."""


def _composite(name, function):
    return lax.composite(function, "shardc." + name)


_relu = _composite("relu", lambda x: lax.max(x, lax.full_like(x, 0)))
_sigmoid = _composite("sigmoid",
                      lambda x: 1 / (1 + lax.exp(lax.neg(x))))
_stop_gradient = _composite("stop_gradient", lambda x: x + 0)


def _relu6(x):
    inside = lax.bitwise_and(lax.gt(x, lax.full_like(x, 0)),
                             lax.lt(x, lax.full_like(x, 6)))
    clamped = lax.clamp(lax.full_like(x, 0), x, lax.full_like(x, 6))
    return lax.select(inside, x, _stop_gradient(clamped))


_OWN = {"relu": _relu, "relu6": _relu6, "sigmoid": _sigmoid, "logistic": _sigmoid}


def where(eqn):
    """The place of an equation in the user's program."""
    if source_info_util is None:
        return "?"
    return source_info_util.summarize(eqn.source_info)


def _inner(eqn):
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if key in eqn.params:
            inner = eqn.params[key]
            return inner if hasattr(inner, "consts") else \
                jex_core.ClosedJaxpr(inner, ())
    return None


def _refuse_hidden(jaxpr, outer):
    """Refuses own gradients inside of loops and branches, which stay as they are."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in ("stop_gradient", "custom_jvp_call", "custom_vjp_call"):
            raise ExportError(
                f"{where(eqn)}: {name} inside of {outer} has a gradient of its "
                "own, which cannot be exported there: write the loop out in "
                "Python")
        inner = _inner(eqn)
        if inner is not None:
            _refuse_hidden(inner.jaxpr, outer)


def _name_of(eqn):
    params = eqn.params
    name = params.get("name") or getattr(params.get("jvp_jaxpr_fun"), "name", "")
    inner = _inner(eqn)
    debug = getattr(getattr(inner, "jaxpr", None), "debug_info", None)
    return str(name or getattr(debug, "func_name", "") or "")


def _custom(eqn, args):
    inner = _inner(eqn)
    debug = getattr(inner.jaxpr, "debug_info", None)
    name = str(getattr(debug, "func_name", "") or _name_of(eqn)).split(" ")[0]
    if eqn.primitive.name.startswith("custom_jvp"):
        if name in _OWN:
            return [_OWN[name](args[0])]
        if name in _PLAIN_DERIVATIVE:
            return evaluate(inner, args)
    raise ExportError(
        f"{where(eqn)}: {name or 'a function'} has a gradient of its own "
        f"({eqn.primitive.name}), which shardc does not know: write it without "
        "custom_jvp or custom_vjp")


def _evaluate_eqn(eqn, args):
    name = eqn.primitive.name
    if name in _CALLS:
        return evaluate(_inner(eqn), args)
    if name == "stop_gradient":
        return [_stop_gradient(args[0])]
    if name == "logistic":
        return [_sigmoid(args[0])]
    if name.startswith(("custom_jvp", "custom_vjp")):
        return _custom(eqn, args)
    if name == "scan":
        return _unrolled(eqn, args)
    if name == "cond":
        return _selected(eqn, args)
    for key in ("jaxpr", "body_jaxpr", "cond_jaxpr", "call_jaxpr"):
        if key in eqn.params:
            inner = eqn.params[key]
            _refuse_hidden(getattr(inner, "jaxpr", inner), name)
    for branch in eqn.params.get("branches", ()):
        _refuse_hidden(branch.jaxpr, name)
    bound = eqn.primitive.get_bind_params(eqn.params)
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)
    out = eqn.primitive.bind(*subfuns, *args, **params)
    return out if eqn.primitive.multiple_results else [out]


def _unrolled(eqn, args):
    """lax.scan, written out."""
    params = eqn.params
    consts = args[:params["num_consts"]]
    count = params["num_consts"] + params["num_carry"]
    carry, stacked = args[params["num_consts"]:count], args[count:]
    steps = range(params["length"])
    results = []
    for step in reversed(steps) if params["reverse"] else steps:
        parts = [lax.index_in_dim(x, step, keepdims=False) for x in stacked]
        out = evaluate(params["jaxpr"], [*consts, *carry, *parts])
        carry = out[:params["num_carry"]]
        results.append(out[params["num_carry"]:])
    if params["reverse"]:
        results.reverse()
    stacked = [jax.numpy.stack(each) for each in zip(*results)]
    return [*carry, *stacked]


def _selected(eqn, args):
    """lax.cond and lax.switch: the results of all branches, one of them chosen."""
    index, *operands = args
    *others, chosen = (evaluate(branch, operands) for branch in eqn.params["branches"])
    for number, results in enumerate(others):
        chosen = [jax.numpy.where(index == number, *pair)
                  for pair in zip(results, chosen)]
    return chosen


def evaluate(closed, args):
    """The results of a jaxpr, traced anew with composites in it."""
    values = {}

    def read(atom):
        return atom.val if isinstance(atom, jex_core.Literal) else values[atom]

    jaxpr = closed.jaxpr
    values.update(zip(jaxpr.constvars, closed.consts))
    values.update(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        inputs = [read(atom) for atom in eqn.invars]
        if source_info_util is None:
            outputs = _evaluate_eqn(eqn, inputs)
        else:
            with source_info_util.user_context(eqn.source_info.traceback):
                outputs = _evaluate_eqn(eqn, inputs)
        values.update(zip(eqn.outvars, outputs))
    return [read(atom) for atom in jaxpr.outvars]


def tagged(function, *args):
    """`function` on flat arguments of the types of `args`, with composites."""
    closed = jax.make_jaxpr(function)(*args)
    return lambda *flat: evaluate(closed, list(flat))
