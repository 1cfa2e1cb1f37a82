"""How a step is called: by position or by name, with arrays and static values."""

import inspect

import jax


def is_array(leaf):
    """Whether a leaf is an array, or stands for one."""
    return isinstance(leaf, jax.ShapeDtypeStruct) or (
        hasattr(leaf, "dtype") and hasattr(leaf, "shape"))


def _parameters(function):
    """The parameters that take one argument each, or None if they are not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return None
    return list(parameters)


def _static_names(step, names):
    """The static arguments of jax.jit and nnx.jit."""
    info = getattr(getattr(step, "jitted_fn", step), "_jit_info", None)
    numbers = getattr(step, "static_argnums", None) or getattr(info, "static_argnums", ())
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers or ())
    found = set(getattr(info, "static_argnames", ()) or ())
    return found | {names[number] for number in numbers if -len(names) <= number < len(names)}


class Call:
    """The form of the calls of one step.

    `names` has the arguments that are arrays: those by position in their order, then
    those by keyword, as JAX flattens them. `static` are the values of the others."""

    def __init__(self, step, args, kwargs, function=None):
        parameters = _parameters(function or step)
        known = [each.name for each in parameters or ()]
        if parameters is None or len(args) > len(known):
            known = [f"arg{number}" for number in range(len(args))]
        self._known, self._count = known, len(args)
        self._optional = {each.name for each in parameters or ()
                          if each.default is not each.empty}
        static = _static_names(step, known)
        given = dict(zip(known, args)) | kwargs
        self.static = {name: value for name, value in given.items() if name in static}
        self._positions = [name for name in known[:len(args)] if name not in static]
        self._keywords = sorted(name for name in kwargs if name not in static)
        self.names = [*self._positions, *self._keywords]
        #: Whether a call is its arrays in their order, and nothing else.
        self.is_plain = not self.static and not kwargs

    def dynamic(self, args, kwargs):
        """The arrays among the arguments of a call, in the order of `names`."""
        if len(args) > len(self._known):
            raise TypeError(f"the step takes {len(self._known)} arguments, {len(args)} given")
        given = dict(zip(self._known, args))
        if twice := sorted(given.keys() & kwargs):
            raise TypeError(f"{twice[0]} is given by position and by name")
        given |= kwargs
        problems = [f"{name} is missing" for name in self.names if name not in given]
        problems += [f"{name} is unknown" for name in given
                     if name not in self.names and name not in self.static]
        if problems:
            raise TypeError("the arguments are not those that the step was traced with: "
                            + ", ".join(problems))
        for name, value in self.static.items():
            if name not in self._optional and name not in given:
                raise TypeError(f"the static argument {name} is missing")
            if name in given and given[name] != value:
                raise TypeError(f"the static argument {name} is {given[name]!r}, and the step "
                                f"was compiled for {value!r}: compile another one")
        return tuple(given[name] for name in self.names)

    def merge(self, values):
        """(args, kwargs) of a call with arrays `values`, in the order of `names`."""
        given = {**dict(zip(self.names, values)), **self.static}
        args = tuple(given.pop(name) for name in self._known[:self._count])
        return args, given

    def index_of(self, argument):
        """The place among `names` of an argument, given by name or by position."""
        name = argument
        if isinstance(argument, int):
            if not 0 <= argument < self._count:
                return argument if 0 <= argument < len(self.names) else None
            name = self._known[argument]
        return self.names.index(name) if name in self.names else None


def split_options(step, options):
    """Keyword arguments of the step among those of the compiler, and these."""
    parameters = _parameters(getattr(step, "fun", step)) or ()
    own = {each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY}
    return ({name: value for name, value in options.items() if name in own},
            {name: value for name, value in options.items() if name not in own})
