"""Keeps the gradients that JAX gives a function, for shardc to differentiate.

Lowering to StableHLO forgets stop_gradient and custom_jvp: the text of a loss
has the value of such a function alone. This evaluates the jaxpr of a loss with
those functions as composites, which shardc knows by name."""

import jax
from jax import lax

from shardc.jax._evaluate import Evaluator
from shardc.jax._jaxprs import CALLS, inner_jaxpr
from shardc.jax._places import ExportError, where

# Functions of jax.nn and jax.numpy with custom_jvp, of which the derivative of
# the plain formula is the same.
_PLAIN_DERIVATIVE = {"logaddexp", "_logaddexp", "log_softmax", "_softmax",
                     "softmax", "logsumexp", "_logaddexp2"}


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
# Ops as composites.
_COMPOSITES = {"stop_gradient": _stop_gradient, "logistic": _sigmoid}


def _refuse_hidden(jaxpr, outer):
    """Refuses own gradients inside of loops and branches, which stay as they are."""
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in ("stop_gradient", "custom_jvp_call", "custom_vjp_call"):
            raise ExportError(
                f"{where(eqn)}: {name} inside of {outer} has a gradient of its "
                "own, which cannot be exported there: write the loop out in "
                "Python")
        inner = inner_jaxpr(eqn)
        if inner is not None:
            _refuse_hidden(inner.jaxpr, outer)


def _function(eqn):
    """The name of the function that has a gradient of its own."""
    params = eqn.params
    debug = getattr(getattr(inner_jaxpr(eqn), "jaxpr", None), "debug_info", None)
    name = getattr(debug, "func_name", "") or params.get("name") or \
        getattr(params.get("jvp_jaxpr_fun"), "name", "")
    return str(name or "").split(" ")[0]


class _Tagger(Evaluator):
    """Evaluates a loss with composites for what has a gradient of its own."""

    def body_of(self, eqn):
        own = eqn.primitive.name == "custom_jvp_call" and _function(eqn) in \
            _PLAIN_DERIVATIVE
        return inner_jaxpr(eqn) if eqn.primitive.name in CALLS or own else None

    def is_elementwise(self, eqn):
        name = eqn.primitive.name
        return name in _COMPOSITES or (name == "custom_jvp_call" and _function(eqn) in _OWN)

    def _select(self, eqn, args):
        """lax.cond and lax.switch: the results of all branches, one of them chosen."""
        index, *operands = args
        *others, chosen = (self.evaluate(branch, operands)
                           for branch in eqn.params["branches"])
        for number, results in enumerate(others):
            chosen = [jax.numpy.where(index == number, *pair)
                      for pair in zip(results, chosen)]
        return chosen

    def evaluate_eqn(self, eqn, args):
        name = eqn.primitive.name
        if body := self.body_of(eqn):
            return self.evaluate(body, args)
        if name in _COMPOSITES:
            return [_COMPOSITES[name](args[0])]
        if self.is_elementwise(eqn):
            return [_OWN[_function(eqn)](args[0])]
        if name.startswith(("custom_jvp", "custom_vjp")):
            raise ExportError(
                f"{where(eqn)}: {_function(eqn) or 'a function'} has a gradient of its "
                f"own ({name}), which shardc does not know: write it without custom_jvp "
                "or custom_vjp")
        if name == "scan":
            return self.unroll(eqn, args)
        if name == "cond":
            return self._select(eqn, args)
        if name == "shard_map":
            return super().evaluate_eqn(eqn, args)
        for key in ("jaxpr", "body_jaxpr", "cond_jaxpr", "call_jaxpr"):
            if key in eqn.params:
                inner = eqn.params[key]
                _refuse_hidden(getattr(inner, "jaxpr", inner), name)
        for branch in eqn.params.get("branches", ()):
            _refuse_hidden(branch.jaxpr, name)
        return super().evaluate_eqn(eqn, args)


def tagged(function, *args):
    """`function` on flat arguments of the types of `args`, with composites."""
    closed = jax.make_jaxpr(function)(*args)
    return lambda *flat: _Tagger().evaluate(closed, list(flat))
