"""shard_map in global form: what its devices do, as one program over all of them.

A local value of a device becomes a row of a global array, which has one leading
dimension per group of mesh axes along which devices may differ. An op of the body
is mapped over these dimensions (jax.vmap), and a collective is an op on them: psum
sums over one, all_gather joins one with a dimension of the value, axis_index counts
along one. Sharding constraints give each dimension to its axes, so that shardc's
partitioner finds the collectives of the body again. The array means the same on any
number of devices: the result is checked like that of any other program.

    in_specs P("data"), 4 devices:   f32[64, 16] -> f32[4, 16, 16] over ["data", , ]
    lax.psum(x, "data"):             f32[4, 16, 8] -> sum over dimension 0 -> f32[16, 8]
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from shardc.jax._jaxprs import MARKS, jaxprs_of, unroll, walk
from shardc.jax._places import ExportError, at, where

_REDUCTIONS = {"psum": lax.reduce_sum, "psum_invariant": lax.reduce_sum,
               "pmax": lax.reduce_max, "pmin": lax.reduce_min}


def _axes(names):
    """Axis names of a spec's entry or of a collective, as a tuple."""
    if names is None:
        return ()
    return tuple(names) if isinstance(names, (tuple, list)) else (names,)


def _names_of(eqn):
    """The axes of a collective; () of other ops."""
    names = eqn.params.get("axes", eqn.params.get("axis_name"))
    if eqn.primitive.name not in {*_REDUCTIONS, *_COLLECTIVES} or names is None:
        return ()
    return _axes(names)


def with_auto_axes(mesh):
    """`mesh` with axes of which the partitioner makes use, whatever types JAX gave
    them."""
    types = (AxisType.Auto,) * len(mesh.axis_names)
    if isinstance(mesh, jax.sharding.Mesh):
        return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=types)
    return jax.sharding.AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=types)


def _join_rows(array, *, dim, sources):
    """Neighbours that come from neighbours are one slice."""
    starts = [row for row, source in enumerate(sources)
              if row == 0 or source != sources[row - 1] + 1]
    parts = [lax.slice_in_dim(array, sources[start], sources[start] + end - start, axis=dim)
             for start, end in zip(starts, (*starts[1:], len(sources)))]
    return lax.concatenate(parts, dim) if len(parts) > 1 else parts[0]


def permute_rows(array, dim, sources):
    """Row i along `dim` is row sources[i] of `array`; the composite is an op of shardc."""
    if list(sources) == sorted(sources):
        return array
    return lax.composite(_join_rows, "shardc.permute_rows")(array, dim=dim,
                                                            sources=tuple(sources))


@dataclasses.dataclass
class _Local:
    """The values of all devices: `array` has a leading dimension for each of `groups`,
    numbers of groups in ascending order. Devices agree along the other groups."""

    array: jax.Array
    groups: tuple = ()


class Region:
    """One shard_map, evaluated in global form."""

    def __init__(self, eqn, evaluator):
        """`evaluator` evaluates ops that are no collectives."""
        self.eqn, self.evaluator = eqn, evaluator
        self.mesh = eqn.params["mesh"]
        shape = dict(self.mesh.shape)
        self.manual = [axis for axis in self.mesh.axis_names
                       if axis in eqn.params.get("newly_manual_axes",
                                                 eqn.params.get("manual_axes", shape))]
        self.groups = self._find_groups()
        self.sizes = [math.prod(shape[axis] for axis in group) for group in self.groups]
        self.auto_mesh = with_auto_axes(self.mesh)

    def _find_groups(self):
        """Axes that are only used together share a dimension: a dimension of a global
        array over both divides into it and one more."""
        uses = [_axes(entry) for specs in ("in_specs", "out_specs")
                for spec in self.eqn.params[specs] for entry in spec]
        body = self.eqn.params["jaxpr"]
        uses += [_names_of(eqn) for eqn in walk(getattr(body, "jaxpr", body))]
        groups = [tuple(self.manual)]
        for use in filter(None, uses):
            split = []
            for group in groups:
                inside = tuple(axis for axis in group if axis in use)
                outside = tuple(axis for axis in group if axis not in use)
                # The order of a spec's axes is that of the mesh, or each is alone.
                ordered = tuple(axis for axis in use if axis in group) == inside
                split += [inside] if ordered else [(axis,) for axis in inside]
                split.append(outside)
            groups = [group for group in split if group]
        return groups

    def _numbers(self, names):
        """The groups of the axes `names`, in their order."""
        numbers = []
        for name in names:
            for number, group in enumerate(self.groups):
                if name in group and number not in numbers:
                    numbers.append(number)
        return numbers

    def _fail(self, eqn, what):
        raise ExportError(f"{where(eqn)}: {what}")

    def fix(self, value, cause):
        """`value` with its groups over their axes, and no other manual axis: where the
        shards come in or go out, or the result of a collective."""
        rest = None if len(self.manual) == len(self.mesh.axis_names) \
            else PartitionSpec.UNCONSTRAINED
        return self._fix(value, [rest] * (value.array.ndim - len(value.groups)), cause)

    def _fix(self, value, entries, cause):
        """`value` with its groups over their axes, its own dimensions as `entries`."""
        spec = PartitionSpec(*[self.groups[number] for number in value.groups], *entries)
        with jax.named_scope(f"shardc.shard_map/{cause}"):
            fixed = lax.with_sharding_constraint(
                value.array, NamedSharding(self.auto_mesh, spec))
        return _Local(fixed, value.groups)

    def _spread(self, value, groups):
        """`value` with a dimension for each of `groups`, and for its own."""
        union = tuple(sorted({*value.groups, *groups}))
        if union == value.groups:
            return value
        shape = [self.sizes[number] for number in union]
        local = value.array.shape[len(value.groups):]
        dims = [union.index(number) for number in value.groups]
        dims += range(len(union), len(union) + len(local))
        return _Local(lax.broadcast_in_dim(value.array, (*shape, *local), dims), union)

    def enter(self, array, spec):
        """The shards of a global array."""
        shape, order, place = [], {}, 0
        kept = []
        for size, entry in zip(array.shape, (*spec, *[None] * array.ndim)):
            for number in self._numbers(_axes(entry)):
                order[number] = len(shape)
                shape.append(self.sizes[number])
                size //= self.sizes[number]
            kept.append(len(shape))
            shape.append(size)
        groups = tuple(sorted(order))
        dims = [*(order[number] for number in groups), *kept]
        shards = lax.transpose(lax.reshape(array, shape), dims)
        return self.fix(_Local(shards, groups), "in")

    def leave(self, value, spec):
        """The global array of shards, as `spec` says."""
        entries = (*spec, *[None] * (value.array.ndim - len(value.groups) - len(spec)))
        wanted = [self._numbers(_axes(entry)) for entry in entries]
        every = {number for numbers in wanted for number in numbers}
        for number in reversed(value.groups):
            if number not in every:  # The devices agree, says the spec.
                array = lax.index_in_dim(value.array, 0, value.groups.index(number),
                                         keepdims=False)
                value = _Local(array, tuple(each for each in value.groups
                                            if each != number))
        value = self.fix(self._spread(value, every), "out")
        local = value.array.shape[len(value.groups):]
        dims, shape = [], []
        for dim, numbers in enumerate(wanted):
            dims += [*map(value.groups.index, numbers), len(value.groups) + dim]
            shape.append(local[dim] * math.prod(self.sizes[each] for each in numbers))
        return lax.reshape(lax.transpose(value.array, dims), shape)

    def apply(self, function, values):
        """`function` of the arrays of each device."""
        union = tuple(sorted({number for value in values for number in value.groups}))
        for number in reversed(union):
            function = jax.vmap(function, in_axes=[
                0 if number in value.groups else None for value in values])
        return [_Local(array, union)
                for array in function(*[value.array for value in values])]

    def run(self, closed, values):
        """The results of a jaxpr on local values."""
        known = {}

        def read(atom):
            return _Local(jnp.asarray(atom.val, atom.aval.dtype)) \
                if isinstance(atom, jex_core.Literal) else known[atom]

        known.update(zip(closed.jaxpr.constvars, map(_Local, closed.consts)))
        known.update(zip(closed.jaxpr.invars, values))
        for eqn in closed.jaxpr.eqns:
            with at(eqn, self.eqn):
                known.update(zip(eqn.outvars,
                                 self._evaluate(eqn, [*map(read, eqn.invars)])))
        return [read(atom) for atom in closed.jaxpr.outvars]

    def _evaluate(self, eqn, values):
        name = eqn.primitive.name
        if name in MARKS:
            return values
        if eqn.params.get("axis_index_groups") is not None:
            self._fail(eqn, f"{name} with axis_index_groups is not supported: give the "
                       "mesh an axis for the groups")
        if name in ("sharding_constraint", "reshard"):
            return [self._constrain(eqn, value) for value in values]
        if name in _REDUCTIONS:
            return [self._reduce(eqn, value) for value in values]
        if name in _COLLECTIVES:
            return _COLLECTIVES[name](self, eqn, values)
        if body := self.evaluator.body_of(eqn):
            return self.run(body, values)
        if self.evaluator.is_elementwise(eqn):
            return [_Local(self.evaluator.evaluate_eqn(eqn, [value.array])[0], value.groups)
                    for value in values]
        if name == "scan":
            return self._unroll(eqn, values)
        if name == "shard_map" or any(
                _names_of(each) or each.primitive.name in MARKS
                for inner in jaxprs_of(eqn) for each in walk(inner)):
            self._fail(eqn, f"{name} inside of shard_map is not supported: write it out "
                       "in Python")
        return self.apply(lambda *args: self.evaluator.evaluate_eqn(eqn, args), values)

    def _constrain(self, eqn, value):
        """A constraint on axes that are not manual."""
        sharding = eqn.params.get("sharding", eqn.params.get("dst_sharding"))
        spec = getattr(sharding, "spec", None)
        if spec is None:
            self._fail(eqn, f"the sharding {sharding} is not supported: expected a "
                       "NamedSharding")
        free = eqn.params.get("unconstrained_dims", ())
        rank = value.array.ndim - len(value.groups)
        entries = [PartitionSpec.UNCONSTRAINED if dim in free else entry
                   for dim, entry in zip(range(rank), (*spec, *[None] * rank))]
        return self._fix(value, entries, "constraint")

    def _unroll(self, eqn, values):
        take = lambda value, step: self.apply(
            lambda x: [lax.index_in_dim(x, step, keepdims=False)], [value])[0]
        stack = lambda parts: self.apply(lambda *xs: [jnp.stack(xs)], list(parts))[0]
        return unroll(eqn.params, values, take, self.run, stack)

    def _reduce(self, eqn, value):
        names = _names_of(eqn)
        if any(not isinstance(name, str) for name in names):
            self._fail(eqn, "a reduction over axes of the mesh and over dimensions is "
                       "not supported: take jnp.sum of the dimensions first")
        numbers = self._numbers(names)
        dims = [value.groups.index(number) for number in numbers if number in value.groups]
        array = value.array
        if eqn.primitive.name.startswith("psum"):
            copies = math.prod(self.sizes[number] for number in numbers
                               if number not in value.groups)
            if copies > 1:
                array = array * jnp.asarray(copies, array.dtype)
        array = _REDUCTIONS[eqn.primitive.name](array, dims)
        rest = tuple(number for number in value.groups if number not in numbers)
        return self.fix(_Local(array, rest), eqn.primitive.name)

    def _split_off(self, value, names):
        """`value` with dimensions for the axes `names`, as the last leading ones in
        the order of the names, besides those of the other groups."""
        numbers = self._numbers(names)
        value = self._spread(value, numbers)
        others = tuple(number for number in value.groups if number not in numbers)
        dims = [*map(value.groups.index, others), *map(value.groups.index, numbers),
                *range(len(value.groups), value.array.ndim)]
        return lax.transpose(value.array, dims), others, numbers

    def _join(self, array, others, numbers, dim, tiled):
        """Moves the dimensions of `numbers`, behind those of `others`, to `dim` of the
        value; with `tiled` they become one with it."""
        first, count = len(others), len(numbers)
        local = array.ndim - first - count
        dims = [*range(first), *range(first + count, first + count + dim),
                *range(first, first + count),
                *range(first + count + dim, first + count + local)]
        shape = list(array.shape[:first]) + list(array.shape[first + count:])
        parts = math.prod(self.sizes[number] for number in numbers)
        if tiled:
            shape[first + dim] *= parts
        else:
            shape.insert(first + dim, parts)
        return lax.reshape(lax.transpose(array, dims), shape)

    def _split(self, array, others, numbers, dim, tiled):
        """The reverse: dimension `dim` of the value, behind those of `others`, gives
        dimensions of `numbers`, which come first in the value."""
        first = len(others)
        sizes = [self.sizes[number] for number in numbers]
        at = first + dim
        rest = [array.shape[at] // math.prod(sizes)] if tiled else []
        shape = [*array.shape[:at], *sizes, *rest, *array.shape[at + 1:]]
        dims = [*range(first), *range(at, at + len(sizes)), *range(first, at),
                *range(at + len(sizes), len(shape))]
        return lax.transpose(lax.reshape(array, shape), dims)

    def _merge(self, eqn, array, others, numbers):
        """The result of the collective `eqn`, whose leading dimensions are of `others`,
        then `numbers`."""
        order = [*others, *numbers]
        dims = [*map(order.index, sorted(order)), *range(len(order), array.ndim)]
        array = lax.transpose(array, dims)
        return self.fix(_Local(array, tuple(sorted(order))), eqn.primitive.name)

    def _all_gather(self, eqn, values):
        found = []
        for value in values:
            array, others, numbers = self._split_off(value, _names_of(eqn))
            array = self._join(array, others, numbers, eqn.params["all_gather_dimension"],
                               eqn.params["tiled"])
            found.append(self.fix(_Local(array, others), eqn.primitive.name))
        return found

    def _reduce_scatter(self, eqn, values):
        found = []
        for value in values:
            array, others, numbers = self._split_off(value, _names_of(eqn))
            array = lax.reduce_sum(array, [len(others) + i for i in range(len(numbers))])
            array = self._split(array, others, numbers, eqn.params["scatter_dimension"],
                                eqn.params["tiled"])
            found.append(self._merge(eqn, array, others, numbers))
        return found

    def _all_to_all(self, eqn, values):
        found = []
        for value in values:
            array, others, numbers = self._split_off(value, _names_of(eqn))
            split, concat = eqn.params["split_axis"], eqn.params["concat_axis"]
            # The op keeps the rank, also where lax.all_to_all does not. Behind the
            # senders come the receivers, which have the result.
            array = self._split(array, [*others, *numbers], numbers, split, True)
            first, count = len(others), len(numbers)
            dims = [*range(first), *range(first + count, first + 2 * count),
                    *range(first, first + count), *range(first + 2 * count, array.ndim)]
            array = self._join(lax.transpose(array, dims), [*others, *numbers], numbers,
                               concat, True)
            found.append(self._merge(eqn, array, others, numbers))
        return found

    def _axis_index(self, eqn, values):
        value = _Local(jnp.zeros((), jnp.int32))
        for number in self._numbers(_names_of(eqn)):
            size = self.sizes[number]
            own = self.fix(_Local(lax.iota(jnp.int32, size), (number,)), "axis_index")
            value, = self.apply(lambda a, b, size=size: [a * size + b], [value, own]) \
                if value.groups else [own]
        return [value]

    def _ppermute(self, eqn, values):
        sent = dict(eqn.params["perm"])
        sources = {to: source for source, to in sent.items()}
        # JAX counts the devices in the order of the mesh, whatever that of the names.
        names = [axis for axis in self.mesh.axis_names if axis in _names_of(eqn)]
        found = []
        for value in values:
            array, others, numbers = self._split_off(value, names)
            dim, count = len(others), len(numbers)
            shape = array.shape
            size = math.prod(shape[dim:dim + count])
            array = lax.reshape(array, (*shape[:dim], size, *shape[dim + count:]))
            # Who does not send has a receiver, too, which takes zeros instead.
            silent = [device for device in range(size) if device not in sent]
            full = [sources[to] if to in sources else
                    silent.pop(silent.index(to) if to in silent else 0)
                    for to in range(size)]
            array = permute_rows(array, dim, full)
            if len(sources) < size:
                receives = jnp.asarray([to in sources for to in range(size)])
                receives = lax.broadcast_in_dim(receives, array.shape, [dim])
                array = lax.select(receives, array, jnp.zeros_like(array))
            found.append(self._merge(eqn, lax.reshape(array, shape), others, numbers))
        return found


_COLLECTIVES = {"all_gather": Region._all_gather,
                "all_gather_invariant": Region._all_gather,
                "all_gather_reduced": Region._all_gather,
                "reduce_scatter": Region._reduce_scatter,
                "unreduced_reduce_scatter": Region._reduce_scatter,
                "all_to_all": Region._all_to_all,
                "axis_index": Region._axis_index,
                "ppermute": Region._ppermute}


class ShardMaps:
    """Evaluates the shard_maps of one program. What one returns and the next one takes,
    as the forward and the backward pass do, stays local."""

    def __init__(self, evaluator):
        self.evaluator = evaluator
        self.left = {}

    def evaluate(self, eqn, args):
        """The results of the shard_map `eqn` on global arrays."""
        region = Region(eqn, self.evaluator)
        body = eqn.params["jaxpr"]
        body = body if hasattr(body, "consts") else jex_core.ClosedJaxpr(body, ())
        values = []
        for array, spec in zip(args, eqn.params["in_specs"]):
            _, local, place = self.left.get(id(array), (None, None, None))
            same = place == (spec, region.groups, region.mesh)
            values.append(local if same else region.enter(jnp.asarray(array), spec))
        results = []
        for local, spec in zip(region.run(body, values), eqn.params["out_specs"]):
            array = region.leave(local, spec)
            # The array is kept, so that its id stays its own.
            self.left[id(array)] = (array, local, (spec, region.groups, region.mesh))
            results.append(array)
        return results
