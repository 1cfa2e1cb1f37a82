"""What jaxprs have inside."""

import copy

from jax.extend import core as jex_core

# Calls, of which nothing but their body counts.
CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}
# They change types of JAX alone, and no value.
MARKS = {"pvary", "pcast", "pbroadcast"}


def inner_jaxpr(eqn):
    """The jaxpr that a call runs, or None."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if key in eqn.params:
            inner = eqn.params[key]
            return inner if hasattr(inner, "consts") else \
                jex_core.ClosedJaxpr(inner, ())
    return None


def jaxprs_of(eqn):
    """All jaxprs that are parameters of an op."""
    for value in eqn.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                yield inner


def walk(jaxpr):
    """All equations of `jaxpr` and of the jaxprs in it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_of(eqn):
            yield from walk(inner)


def unroll(params, args, take, run, stack):
    """The results of a lax.scan with parameters `params` on `args`, written out:
    `take(x, step)` is what a trip has of x, `run(jaxpr, values)` gives the results of a
    trip, and `stack(parts)` those of all trips as one."""
    first = params["num_consts"]
    consts, carry, stacked = (args[:first], args[first:first + params["num_carry"]],
                              args[first + params["num_carry"]:])
    steps = range(params["length"])
    results = []
    for step in reversed(steps) if params["reverse"] else steps:
        parts = [take(x, step) for x in stacked]
        out = run(params["jaxpr"], [*consts, *carry, *parts])
        carry = out[:params["num_carry"]]
        results.append(out[params["num_carry"]:])
    if params["reverse"]:
        results.reverse()
    return [*carry, *map(stack, zip(*results))]


def lower(traced):
    """The `Lowered` of a `Traced`, whatever devices there are: an AbstractMesh has none.
    For a CPU; but a TPU's threefry is free of loops."""
    is_random = any(eqn.primitive.name.startswith(("random_", "threefry"))
                    for eqn in walk(traced.jaxpr.jaxpr))
    return traced.lower(lowering_platforms=("tpu" if is_random else "cpu",))


def keeping_unused(traced):
    """`traced` of which lowering keeps all arguments, or None if JAX has no way to."""
    try:
        kept = copy.copy(traced)
        kept._params = {**traced._params, "keep_unused": True}
        kept._lojax = None  # Made of the old ones.
    except (AttributeError, TypeError):
        return None
    return kept


def has_shard_map(jaxpr):
    """Whether there is a shard_map in `jaxpr` or in what it calls."""
    return any(eqn.primitive.name == "shard_map" for eqn in walk(jaxpr))
