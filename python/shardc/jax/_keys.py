"""Arrays of JAX that shardc has as signed integers: unsigned ones, and keys."""

import jax
import numpy as np

_SIGNED = {np.dtype(np.uint32): np.dtype(np.int32), np.dtype(np.uint64): np.dtype(np.int64)}


def is_key(dtype):
    """Whether `dtype` is that of jax.random.key."""
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def has_bits(dtype):
    """Whether shardc has the bits of such elements as signed integers."""
    return is_key(dtype) or dtype in _SIGNED


def to_signed(value):
    """A NumPy array as shardc has it: keys and unsigned integers by their bits."""
    if is_key(getattr(value, "dtype", None)):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    signed = _SIGNED.get(array.dtype)
    return array if signed is None else array.view(signed)
