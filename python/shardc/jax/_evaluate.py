"""Traces a jaxpr anew, with some ops written in another way."""

import jax
from jax import lax
from jax.extend import core as jex_core
from jax.sharding import NamedSharding

from shardc.jax._jaxprs import CALLS, MARKS, has_shard_map, inner_jaxpr, jaxprs_of, lower, unroll
from shardc.jax._places import ExportError, at, where
from shardc.jax._shard_map import ShardMaps, with_auto_axes


class Evaluator:
    """Evaluates jaxprs: a shard_map in global form, all else as it is. The results are
    not differentiated any more."""

    def __init__(self):
        self.shard_maps = ShardMaps(self)

    def body_of(self, eqn):
        """The jaxpr whose results are those of the op, or None."""
        if eqn.primitive.name in CALLS | {"custom_jvp_call", "custom_vjp_call"}:
            return inner_jaxpr(eqn)
        return None

    def is_elementwise(self, eqn):
        """Whether evaluate_eqn takes an argument of any shape, and cannot be mapped."""
        return False

    def evaluate(self, closed, args):
        """The results of a jaxpr on `args`."""
        values = {}

        def read(atom):
            return atom.val if isinstance(atom, jex_core.Literal) else values[atom]

        jaxpr = closed.jaxpr
        values.update(zip(jaxpr.constvars, closed.consts))
        values.update(zip(jaxpr.invars, args))
        for eqn in jaxpr.eqns:
            with at(eqn):
                values.update(zip(eqn.outvars, self.evaluate_eqn(
                    eqn, [read(atom) for atom in eqn.invars])))
        return [read(atom) for atom in jaxpr.outvars]

    def evaluate_eqn(self, eqn, args):
        """The results of one op."""
        name = eqn.primitive.name
        if name == "shard_map":
            return self.shard_maps.evaluate(eqn, args)
        if name in MARKS:
            return args
        if not any(map(has_shard_map, jaxprs_of(eqn))):
            return self.bind(eqn, args)
        if body := self.body_of(eqn):
            return self.evaluate(body, args)
        if name == "scan":
            return self.unroll(eqn, args)
        raise ExportError(f"{where(eqn)}: shard_map inside of {name} is not supported: "
                          "write the loop out in Python")

    def bind(self, eqn, args):
        """The op as it is, on values without a sharding in their types."""
        name = eqn.primitive.name
        if name == "reshard":
            target = eqn.params["dst_sharding"]
            target = NamedSharding(with_auto_axes(target.mesh), target.spec)
            return [lax.with_sharding_constraint(arg, target) for arg in args]
        params = eqn.params if name == "sharding_constraint" else {
            name: None if name in ("sharding", "out_sharding") else value
            for name, value in eqn.params.items()}
        bound = eqn.primitive.get_bind_params(params)
        subfuns, params = bound if isinstance(bound, tuple) else ((), bound)
        out = eqn.primitive.bind(*subfuns, *args, **params)
        return out if eqn.primitive.multiple_results else [out]

    def unroll(self, eqn, args):
        """lax.scan, written out."""
        take = lambda x, step: lax.index_in_dim(x, step, keepdims=False)
        return unroll(eqn.params, args, take, self.evaluate, jax.numpy.stack)


def lower_in_global_form(closed):
    """The `Lowered` of the jaxpr `closed` without shard_map and without shardings of
    its arguments."""
    types = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in closed.in_avals]
    flat = jax.jit(lambda *flat: Evaluator().evaluate(closed, list(flat)),
                   keep_unused=True)
    return lower(flat.trace(*types))
