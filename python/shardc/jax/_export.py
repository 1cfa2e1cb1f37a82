"""Export of loss functions."""

import numpy as np

import jax
from jax.sharding import NamedSharding

from shardc.jax._jaxprs import lower
from shardc.jax._optimizers import Optimizer, number, sgd
from shardc.jax._places import ExportError, of_the_user
from shardc.jax._tag import tagged
from shardc.jax._text import to_text


def _names(tree, prefix):
    """A name for each leaf: its path, joined by dots."""
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    names = []
    for path, _ in paths:
        inner = jax.tree_util.keystr(path, simple=True, separator=".")
        names.append(".".join(part for part in (prefix, inner) if part))
    return names


def distinct(names, prefix, others):
    """`names` of parameters, of which those in `others` begin with `prefix`."""
    taken = set(others)
    return [f"{prefix}.{name}" if name in taken else name for name in names]


def _sharding(leaf):
    sharding = getattr(leaf, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) else None


def _shardings(tree, given):
    """One sharding or None per leaf: `given`, a prefix of `tree`, or the leaf's."""
    leaves, structure = jax.tree.flatten(tree)
    if given is None:
        return [_sharding(leaf) for leaf in leaves]
    is_leaf = lambda x: x is None or isinstance(x, jax.sharding.Sharding)
    broadcast = jax.tree.broadcast(given, tree, is_leaf=is_leaf)
    return jax.tree.flatten(broadcast, is_leaf=is_leaf)[0]


def _training(optimizer, clip_norm):
    clip = f", clip_norm = {number(clip_norm)}" if clip_norm is not None else ""
    return (f"#shardc.training<loss = @loss, optimizer = {optimizer}{clip}>")


@of_the_user()
def export_loss(path, loss_fn, params, x, y, *, optimizer=None, clip_norm=None,
                shardings=None, initial=None, has_aux=False):
    """Writes `loss_fn(params, x, y)` as a model of shardc into the file `path`.

    shardc differentiates it and adds `optimizer`, by default sgd(0.01).
    Arguments may be arrays or jax.ShapeDtypeStruct, in any pytree; x and y
    share their leading dimension, the batch. `shardings` has a NamedSharding,
    or a tree of them, for params, x and y, as in_shardings of jax.jit; without
    it arrays keep the sharding that they have. `initial` names a file .npz for
    the values of `params` (shardc-run --load-params). With `has_aux` the
    function returns (loss, aux), and aux is left out."""
    optimizer = optimizer or sgd(0.01)
    if not isinstance(optimizer, Optimizer):
        raise TypeError("optimizer: expected one of shardc.jax, such as "
                        f"adam(1e-3), got {optimizer!r}")
    leaves, structure = jax.tree.flatten((params, x, y))
    types = [jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.canonicalize_dtype(
        getattr(leaf, "dtype", None) or np.asarray(leaf).dtype))
             for leaf in leaves]

    def flat_loss(*flat):
        value = loss_fn(*jax.tree.unflatten(structure, flat))
        return value[0] if has_aux else value

    given = shardings if shardings is not None else (None, None, None)
    placed = [each for tree, prefix in zip((params, x, y), given, strict=True)
              for each in _shardings(tree, prefix)]
    shape = jax.eval_shape(flat_loss, *types)
    if getattr(shape, "shape", None) != ():
        raise ExportError("the loss function must return one scalar "
                          f"(or (loss, aux) with has_aux=True), got {shape}")
    loss = jax.jit(tagged(flat_loss, *types), keep_unused=True,
                   in_shardings=placed if any(placed) else None)
    lowered = lower(loss.trace(*types))

    parameters = _names(params, "")
    if parameters == [""]:
        parameters = ["params"]
    inputs, labels = _names(x, "x"), _names(y, "y")
    parameters = distinct(parameters, "params", inputs + labels)
    roles = [f'#shardc.parameter<"{name}", constant(0.0)>' for name in parameters]
    roles += [f'#shardc.input<"{name}">' for name in inputs]
    roles += [f'#shardc.label<"{name}">' for name in labels]
    header = "// A loss function of JAX, exported by shardc.jax (docs/JAX.md).\n"
    text = to_text(lowered, loss_fn, parameters + inputs + labels, roles,
                   _training(optimizer, clip_norm), header)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if initial is not None:
        np.savez(initial, **dict(zip(parameters,
                                     map(np.asarray, jax.tree.leaves(params)))))
