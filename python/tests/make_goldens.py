"""Exports the programs of this folder and trains them with JAX on one device.

python/tests$ PYTHONPATH=.. V/bin/python make_goldens.py [NAME...]

V has the packages of ../requirements-test.txt. With --check EVERY FIRST it writes nothing, and
fails if what JAX gives for every so many programs is not what is committed. Without,
it writes below test/golden/jax, for each program, as test/golden/make_goldens.py does:

  model.mlir    the program, exported for a mesh data=2,model=4
  init.npz      initial parameters
  data.npz      the batches, in order
  final.npz     parameters after the last step
  losses.json   the loss of each step, before its update

The files are committed: tests need neither Python packages nor JAX.
"""

import inspect
import json
import os
import pathlib
import re
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

import losses
import ops
import programs
import randoms
import shard_maps
import steps
import shardc.jax as sj
from shardc.jax._functional import functional

GOLDEN = pathlib.Path(__file__).parents[2] / "test" / "golden" / "jax"
TESTS = pathlib.Path(__file__).parents[2] / "test" / "Integration" / "JaxImport"
# Files stay small: the line of the user and that which called it.
jax.config.update("jax_traceback_in_locations_limit", 2)
MESH = jax.make_mesh((2, 4), ("data", "model"),
                     axis_types=(jax.sharding.AxisType.Auto,) * 2)
LOSSES = {**losses.CASES, "ops": ops.case, **shard_maps.LOSSES, **randoms.LOSSES,
          **programs.LOSSES}
STEPS = {**steps.CASES, **shard_maps.STEPS, **randoms.STEPS, **programs.STEPS}
OPTIMIZERS = [(sj.sgd(0.05), optax.sgd(0.05)), (sj.adam(1e-2), optax.adam(1e-2)),
              (sj.sgd(0.05, momentum=0.9), optax.sgd(0.05, momentum=0.9)),
              (sj.adamw(1e-2), optax.adamw(1e-2))]


def over_rows(leaf):
    return NamedSharding(MESH, PartitionSpec("data"))


def at_rest(leaf):
    """Rows over "data", columns over "model", where they divide: FSDP and TP."""
    spec = [None] * leaf.ndim
    for dim, axis in zip(range(leaf.ndim - 1, -1, -1), ("model", "data")):
        if leaf.shape[dim] % MESH.shape[axis] == 0:
            spec[dim] = axis
    return NamedSharding(MESH, PartitionSpec(*spec))


def get_steps(name):
    """The steps of `ops` are large: one shows values and gradients."""
    return 1 if name in ("ops", "step_ops") else 3


def get_optimizers(number, name):
    """For shardc and for JAX. Adam makes steps of one size of gradients that are
    rounding errors."""
    if name == "ops":
        return sj.sgd(1.0), optax.sgd(1.0)
    return OPTIMIZERS[0 if name == "mixed" else number % len(OPTIMIZERS)]


def by_specs(params, specs):
    """Where a leaf is: at the spec of the parameter of its shape, else everywhere."""
    flat = jax.tree.flatten(specs, is_leaf=lambda x: isinstance(x, PartitionSpec))[0]
    known = {leaf.shape: spec for leaf, spec in zip(jax.tree.leaves(params), flat)}
    return lambda leaf: NamedSharding(MESH, known.get(leaf.shape, PartitionSpec()))


def rows(tree, step):
    first = step * losses.BATCH
    return jax.tree.map(lambda x: x[first:first + losses.BATCH], tree)


def named(tree, prefix):
    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {".".join(filter(None, (prefix, jax.tree_util.keystr(
        path, simple=True, separator=".")))): np.asarray(leaf) for path, leaf in paths}


def train(loss_fn, optimizer, params, x, y, count):
    @jax.jit
    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    state, found = optimizer.init(params), []
    for number in range(count):
        params, state, loss = step(params, state, rows(x, number), rows(y, number))
        found.append(float(loss))
    return params, found


def get_tolerances(name):
    """Of losses and of parameters."""
    known = {"mixed": "1e-2 1e-2", "step_random": "0 0", "step_unsigned": "0 0",
             "step_initializers": "0 1e-6"}
    return known.get(name, "1e-5 1e-4")


def bytes_of(name, mesh, more):
    """The arguments of compare-training for the bytes that are sent."""
    if mesh != "data=2,model=4" or not (GOLDEN / name / "communication.json").exists():
        return ""
    kind = "cheapest" if "cheapest" in more else "follow"
    return f" %golden/jax/{name}/communication.json {kind}"


def get_meshes(name):
    """The meshes and flags to run a program with."""
    meshes = [("data=1,model=1", ""),
              ("data=4,model=1", ""),
              ("data=8,model=1", ""),
              ("data=2,model=4", " --verify-partition --check-reference"),
              ("data=2,model=4", " --partition=cheapest --objective=bytes")]
    # The steps of `ops` take seconds to compile.
    return meshes[::3] if get_steps(name) == 1 else meshes


def write_test(name):
    golden = f"%golden/jax/{name}"
    count = get_steps(name)
    lines = [f"# Steps of {name} (python/tests) agree with JAX on one",
             "# device, on meshes of up to eight devices.",
             "# python/tests/make_goldens.py wrote this."]
    for mesh, more in get_meshes(name):
        lines += [f"RUN: shardc-run {golden}/model.mlir --mesh={mesh}{more} \\",
                  f"RUN:   --load-params={golden}/init.npz --data={golden}/data.npz \\",
                  f"RUN:   --no-shuffle --steps={count} --metrics=%t.jsonl --save-params=%t.npz",
                  f"RUN: compare-training %t.jsonl {golden}/losses.json %t.npz \\",
                  f"RUN:   {golden}/final.npz {get_tolerances(name)}" + bytes_of(name, mesh, more)]
    (TESTS / f"{name}.test").write_text("\n".join(lines) + "\n")


def get_loss(number, name):
    """A loss with its data, and where its parameters are at rest."""
    rng = np.random.default_rng(number)
    if name in shard_maps.LOSSES:
        *loss, specs = LOSSES[name](rng, MESH)
        return *loss, by_specs(loss[1], specs)
    return *LOSSES[name](rng), at_rest


def write_loss(number, name, folder):
    loss_fn, params, x, y, place = get_loss(number, name)
    ours, theirs = get_optimizers(number, name)
    shardings = tuple(jax.tree.map(each, tree) for each, tree in
                      ((place, params), (over_rows, x), (over_rows, y)))
    sj.export_loss(folder / "model.mlir", loss_fn, params, rows(x, 0), rows(y, 0),
                   optimizer=ours, shardings=shardings, initial=folder / "init.npz")
    final, found = train(loss_fn, theirs, params, x, y, get_steps(name))
    np.savez(folder / "final.npz", **named(final, ""))
    np.savez(folder / "data.npz", **named(x, "x"), **named(y, "y"))
    (folder / "losses.json").write_text(json.dumps(found) + "\n")
    print(f"{name}: {found[0]:.6f} -> {found[-1]:.6f}")


def get_step(number, name):
    """A step as a Program, and where its carried arrays are at rest."""
    rng = np.random.default_rng(100 + number)
    if name in programs.STEPS:
        return STEPS[name](rng), at_rest
    if name in shard_maps.STEPS:
        step, params, state, x, y, specs = STEPS[name](rng, MESH)
        return programs.Program(step, (params, state), x, y), by_specs(params, specs)
    step, params, state, x, y = STEPS[name](rng)
    return programs.Program(step, (params, state), x, y), at_rest


def as_function(program):
    """The step as a function of pytrees of arrays, and its arguments."""
    args = (*program.carried, *first_batch(program), *program.constants)
    objects = functional(program.step, args, {})
    return (objects.step, objects.args) if objects else (program.step, args)


def get_shardings(program, place):
    """Of the arguments of that function."""
    count = len(program.carried)
    args = as_function(program)[1]
    return (*(jax.tree.map(place, jax.tree.map(np.asarray, tree)) for tree in args[:count]),
            *(jax.tree.map(over_rows, tree) for tree in args[count:count + 2]),
            *(None for _ in program.constants))


def placed(arg, place):
    """An argument whose arrays are where `place` says: objects have no shardings."""
    put = lambda leaf: jax.device_put(leaf, place(leaf)) if hasattr(leaf, "shape") else leaf
    if not isinstance(arg, nnx.Pytree):
        return jax.tree.map(put, arg)
    copied = nnx.clone(arg)
    nnx.update(copied, jax.tree.map(put, nnx.state(copied)))
    return copied


def export_step(program, place, folder):
    """Writes the model and its initial values."""
    args = (*program.carried, *first_batch(program), *program.constants)
    if hasattr(program.step, "lower"):  # nnx.jit and eqx.filter_jit.
        count = len(program.carried)
        args = [placed(arg, place if index < count else over_rows)
                for index, arg in enumerate(args)]
        sj.export(folder / "model.mlir", program.step, *args, initial=folder / "init.npz")
        return
    carried = tuple(range(len(program.carried)))
    jitted = jax.jit(program.step, donate_argnums=carried, keep_unused=True,
                     in_shardings=get_shardings(program, place))
    sj.export(folder / "model.mlir", jitted, *args, initial=folder / "init.npz")


def first_batch(program):
    """The first batch; of a program whose data are resident, all of it."""
    if is_resident(program):
        return program.x, program.y
    return rows(program.x, 0), rows(program.y, 0)


def is_resident(program):
    return program.step.__qualname__.startswith("resident.")


def train_step(program, count):
    """The carried values in the end, by name, and what each step gave."""
    step = program.step if hasattr(program.step, "lower") else jax.jit(program.step)
    carried, found = program.carried, []
    for batch in range(count):
        data = first_batch(program) if is_resident(program) else (
            rows(program.x, batch), rows(program.y, batch))
        results = step(*carried, *data, *program.constants)
        results = results if isinstance(results, tuple) else (results,)
        # Functions of nnx.jit change what they are given.
        carried = results[:len(carried)] if len(results) > len(carried) else carried
        found.append(jax.tree.map(float, results[-1]))
    names = list(inspect.signature(step).parameters)
    values = {}
    for index, (name, value) in enumerate(zip(names, carried)):
        if isinstance(value, nnx.Pytree):
            value = nnx.to_pure_dict(nnx.state(value))
        value = jax.tree.map(lambda leaf: leaf if hasattr(leaf, "shape") else None, value)
        values.update(named(value, name if index else ""))
    return values, found


def write_step(number, name, folder):
    program, place = get_step(number, name)
    export_step(program, place, folder)
    values, found = train_step(program, get_steps(name))
    parameters = np.load(folder / "init.npz")
    np.savez(folder / "final.npz", **{name: values[name] for name in parameters
                                      if parameters[name].dtype.kind == "f"})
    constants = list(inspect.signature(program.step).parameters)[len(program.carried) + 2:]
    np.savez(folder / "data.npz", **named(program.x, "x"), **named(program.y, "y"),
             **dict(zip(constants, program.constants)))
    (folder / "losses.json").write_text(json.dumps(found) + "\n")
    print(f"{name}: {found[0]} -> {found[-1]}")


def without_locations(text):
    """What is compared of a module."""
    text = re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)
    parts = re.split(r"\s*\bloc\(", text)
    kept = [parts[0]]
    for part in parts[1:]:
        depth = 1
        for end, letter in enumerate(part, 1):
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                break
        kept.append(part[end:])
    return "".join(kept)


def differences(folder, name):
    """What is not as committed in the `folder` of a program: locations may differ."""
    committed, found = GOLDEN / name, []
    texts = [without_locations((each / "model.mlir").read_text())
             for each in (committed, folder)]
    if texts[0] != texts[1]:
        found.append("the text")
    expected, actual = np.load(committed / "final.npz"), np.load(folder / "final.npz")
    if set(expected) != set(actual) or not all(
            np.allclose(expected[key], actual[key], 1e-5, 1e-6) for key in expected):
        found.append("the parameters")
    return found


def check(names):
    """Whether the programs of these `names` are what is committed."""
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            write(name, pathlib.Path(folder))
            if found := differences(pathlib.Path(folder), name):
                stale.append(f"{name} ({', '.join(found)})")
    if stale:
        sys.exit(f"test/golden/jax differs from what JAX gives: {', '.join(stale)}: run "
                 "python/tests/make_goldens.py")


def number_of(name):
    """That of the generator of random numbers. Those of programs.py stay as they are
    when others are added."""
    for first, cases in ((46, programs.LOSSES), (15, programs.STEPS)):
        if name in cases:
            return first + list(cases).index(name)
    return list(LOSSES if name in LOSSES else STEPS).index(name)


def write(name, folder):
    if name in LOSSES:
        write_loss(number_of(name), name, folder)
    else:
        write_step(number_of(name), name, folder)


def main():
    names = [*LOSSES, *STEPS]
    if sys.argv[1:2] == ["--check"]:
        every, first = map(int, sys.argv[2:4])
        check(names[first::every])
        return
    TESTS.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or names:
        folder = GOLDEN / name
        folder.mkdir(parents=True, exist_ok=True)
        write(name, folder)
        write_test(name)


if __name__ == "__main__":
    main()
