"""What jaxprs have inside."""

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


def lower(traced):
    """The `Lowered` of a `Traced`, whatever devices there are: an AbstractMesh has none.
    For a CPU; but a TPU's threefry is free of loops."""
    is_random = any(eqn.primitive.name.startswith(("random_", "threefry"))
                    for eqn in walk(traced.jaxpr.jaxpr))
    return traced.lower(lowering_platforms=("tpu" if is_random else "cpu",))


def has_shard_map(jaxpr):
    """Whether there is a shard_map in `jaxpr` or in what it calls."""
    return any(eqn.primitive.name == "shard_map" for eqn in walk(jaxpr))
