"""Arrays that a compiled step returns."""

import jax
import ml_dtypes
import numpy as np

from shardc import _core
from shardc.jax._keys import has_bits, is_key

_DTYPES = {
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}


def _of_jax(bits, is_key):
    """The array of JAX with these elements, or the key with these bits."""
    array = jax.numpy.asarray(bits)
    return jax.random.wrap_key_data(array) if is_key else array


class Array(np.lib.mixins.NDArrayOperatorsMixin, jax.Array):
    """A result of a step, which NumPy and JAX take as an array.

    The value of a carried result stays with shardc until it is read. Once a step
    was called with it, it is deleted, as a donated array of JAX. Attributes and methods
    that are not here are those of an array of JAX with its value."""

    #: The handle, a _core.Array.
    __slots__ = ("_core",)
    __hash__ = None
    _is_key = False

    @property
    def shape(self):
        return _core.array_shape(self._core)

    @property
    def dtype(self):
        return _DTYPES[_core.array_type(self._core)]

    def is_deleted(self):
        return _core.is_deleted(self._core)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    def _read(self):
        value = _core.read_array(self._core)
        if value is None:
            raise RuntimeError(f"Array has been deleted with shape={self.dtype}"
                               f"{list(self.shape)}: a step was called with it, and "
                               "its result has taken its place")
        return value.view(self.dtype) if value.dtype != self.dtype else value

    def __array__(self, dtype=None, copy=None):
        value = self._read()
        if dtype is not None and value.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.dtype} cannot become {dtype} without a copy")
            return value.astype(dtype)
        return value.copy() if copy and not value.flags.writeable else value

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        ours = getattr(jax.numpy, ufunc.__name__, None)
        if ours and method == "__call__" and any(
                isinstance(each, jax.Array) and not isinstance(each, Array) for each in inputs):
            return ours(*(each.__jax_array__() if isinstance(each, Array) else each
                          for each in inputs), **options)
        plain = [each._read() if isinstance(each, Array) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __dlpack__(self, **options):
        value = self._read()
        if not value.flags.writeable:
            value = value.copy()
        if value.dtype == ml_dtypes.bfloat16:  # NumPy cannot pass it on.
            return self.__jax_array__().__dlpack__(**options)
        return value.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __jax_array__(self):
        return _of_jax(self._read(), self._is_key)

    def __reduce__(self):
        return _of_jax, (np.array(self._read()), self._is_key)

    def __copy__(self):
        return self.__jax_array__()

    def __deepcopy__(self, memo):
        return self.__jax_array__()

    def __round__(self, digits=None):
        return round(self.__jax_array__(), digits)

    def __float__(self):
        return float(self._read())

    def __int__(self):
        return int(self._read())

    def __index__(self):
        return self._read().__index__()

    def __bool__(self):
        return bool(self._read())

    def __len__(self):
        return len(self._read())

    def __iter__(self):
        return iter(self._read())

    def __getitem__(self, index):
        return self._read()[index]

    def __format__(self, spec):
        return format(self._read(), spec)

    def __str__(self):
        return str(self._read())

    def __repr__(self):
        if self.is_deleted():
            return f"Array(deleted, shape={self.shape}, dtype={self.dtype})"
        return f"Array({np.array2string(self._read(), separator=', ')}, dtype={self.dtype})"

    def item(self, *index):
        return self._read().item(*index)

    def tolist(self):
        return self._read().tolist()

    def astype(self, dtype):
        return self._read().astype(dtype)

    def block_until_ready(self):
        """At once: a step has ended when its call returns."""
        return self


class UnsignedArray(Array):
    """Unsigned integers, of which shardc has the bits."""

    __slots__ = ()

    @property
    def dtype(self):
        return np.dtype(np.uint64 if _core.array_type(self._core) == "i64" else np.uint32)


class KeyArray(Array):
    """Keys of jax.random, of which shardc has the bits. NumPy takes it as these; for
    functions of jax.random it becomes a key by jax.numpy.asarray."""

    __slots__ = ()
    _is_key = True

    @property
    def dtype(self):
        return np.dtype(np.uint32)


def class_for(dtype):
    """The class of a result that is of `dtype` in JAX."""
    if is_key(dtype):
        return KeyArray
    return UnsignedArray if has_bits(dtype) else Array


def _add_attributes():
    """What jax.Array declares, for its classes to have."""
    def attribute(name):
        return property(lambda self: getattr(self.__jax_array__(), name),
                        doc=getattr(jax.Array, name).__doc__)

    for name in dir(jax.Array):
        if not name.startswith("_") and name not in vars(Array):
            setattr(Array, name, attribute(name))


_add_attributes()


def _register():
    """Lets functions of jax.numpy and jax.jit take arrays as they take NumPy's."""
    from jax._src import core, dtypes

    for each in (Array, UnsignedArray):
        core.pytype_aval_mappings[each] = lambda x: core.ShapedArray(x.shape, x.dtype)
        dtypes.canonicalize_value_handlers[each] = \
            lambda x: dtypes.canonicalize_value(x._read())


try:
    _register()
except (AttributeError, ImportError):  # np.asarray is needed first then.
    pass
