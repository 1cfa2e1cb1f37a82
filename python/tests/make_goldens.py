"""Exports the programs of this folder and trains them with JAX on one device.

python/tests$ PYTHONPATH=.. V/bin/python make_goldens.py [NAME...]

V has the packages of requirements.txt. Writes below test/golden/jax, for each
program, as test/golden/make_goldens.py does:

  model.mlir    the program, exported for a mesh data=2,model=4
  init.npz      initial parameters
  data.npz      the batches, in order
  final.npz     parameters after the last step
  losses.json   the loss of each step, before its update

The files are committed: tests need neither Python packages nor JAX.
"""

import json
import os
import pathlib
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

import losses
import ops
import randoms
import shard_maps
import steps
import shardc.jax as sj

GOLDEN = pathlib.Path(__file__).parents[2] / "test" / "golden" / "jax"
TESTS = pathlib.Path(__file__).parents[2] / "test" / "Integration" / "JaxImport"
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "JAX.md"
TABLE_BEGIN, TABLE_END = "<!-- programs -->", "<!-- end of programs -->"
jax.config.update("jax_default_matmul_precision", "highest")
MESH = jax.make_mesh((2, 4), ("data", "model"),
                     axis_types=(jax.sharding.AxisType.Auto,) * 2)
LOSSES = {**losses.CASES, "ops": ops.case, **shard_maps.LOSSES,
          **randoms.LOSSES}
STEPS = {**steps.CASES, **shard_maps.STEPS, **randoms.STEPS}
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


def write_test(name):
    golden = f"%golden/jax/{name}"
    count = get_steps(name)
    lines = [f"# Steps of {name} (python/tests) agree with JAX on one",
             "# device, on meshes of one, four and eight devices.",
             "# python/tests/make_goldens.py wrote this."]
    for mesh, more in (("data=1,model=1", ""),
                       ("data=4,model=1", ""),
                       ("data=8,model=1", ""),
                       ("data=2,model=4", " --verify-partition --check-reference"),
                       ("data=2,model=4", " --partition=cheapest --objective=bytes")):
        lines += [f"RUN: shardc-run {golden}/model.mlir --mesh={mesh}{more} \\",
                  f"RUN:   --load-params={golden}/init.npz --data={golden}/data.npz \\",
                  f"RUN:   --no-shuffle --steps={count} --metrics=%t.jsonl --save-params=%t.npz",
                  f"RUN: compare-training %t.jsonl {golden}/losses.json %t.npz \\",
                  f"RUN:   {golden}/final.npz {get_tolerances(name)}"]
    (TESTS / f"{name}.test").write_text("\n".join(lines) + "\n")


def write_loss(number, name):
    rng = np.random.default_rng(number)
    if name in shard_maps.LOSSES:
        loss_fn, params, x, y, specs = LOSSES[name](rng, MESH)
        place = by_specs(params, specs)
    else:
        loss_fn, params, x, y = LOSSES[name](rng)
        place = at_rest
    ours, theirs = get_optimizers(number, name)
    folder = GOLDEN / name
    folder.mkdir(parents=True, exist_ok=True)
    shardings = tuple(jax.tree.map(each, tree) for each, tree in
                      ((place, params), (over_rows, x), (over_rows, y)))
    sj.export_loss(folder / "model.mlir", loss_fn, params, rows(x, 0), rows(y, 0),
                   optimizer=ours, shardings=shardings, initial=folder / "init.npz")
    final, found = train(loss_fn, theirs, params, x, y, get_steps(name))
    np.savez(folder / "final.npz", **named(final, ""))
    np.savez(folder / "data.npz", **named(x, "x"), **named(y, "y"))
    (folder / "losses.json").write_text(json.dumps(found) + "\n")
    write_test(name)
    print(f"{name}: {found[0]:.6f} -> {found[-1]:.6f}")


def write_step(number, name):
    rng = np.random.default_rng(100 + number)
    if name in shard_maps.STEPS:
        step, params, state, x, y, specs = STEPS[name](rng, MESH)
        place = by_specs(params, specs)
    else:
        step, params, state, x, y = STEPS[name](rng)
        place = at_rest
    folder = GOLDEN / name
    folder.mkdir(parents=True, exist_ok=True)
    first = (params, state, rows(x, 0), rows(y, 0))
    shardings = (*(jax.tree.map(place, jax.tree.map(np.asarray, tree))
                   for tree in first[:2]),
                 *(jax.tree.map(over_rows, tree) for tree in first[2:]))
    jitted = jax.jit(step, donate_argnums=(0, 1), keep_unused=True,
                     in_shardings=shardings)
    sj.export(folder / "model.mlir", jitted, *first, initial=folder / "init.npz")
    alone, found = jax.jit(step), []
    for batch in range(get_steps(name)):
        params, state, loss = alone(params, state, rows(x, batch), rows(y, batch))
        found.append(float(loss))
    np.savez(folder / "final.npz", **named(params, ""))
    np.savez(folder / "data.npz", **named(x, "x"), **named(y, "y"))
    (folder / "losses.json").write_text(json.dumps(found) + "\n")
    write_test(name)
    print(f"{name}: {found[0]:.6f} -> {found[-1]:.6f}")


def write_table():
    """The table of docs/JAX.md: the programs that have a test."""
    text = DOCS.read_text()
    head, rest = text.split(TABLE_BEGIN)
    tail = rest.split(TABLE_END)[1]
    lines = ["| program | optimizer | tolerance of losses, parameters |", "|---|---|---|"]
    for name in (*LOSSES, *STEPS):
        model = GOLDEN / name / "model.mlir"
        if model.exists():
            kind = re.search(r"optimizer = <(\w+)", model.read_text()).group(1)
            kind = "its own" if name in STEPS else kind
            lines.append(f"| `{name}` | {kind} | {get_tolerances(name).replace(' ', ', ')} |")
    table = "\n".join(lines)
    DOCS.write_text(f"{head}{TABLE_BEGIN}\n{table}\n{TABLE_END}{tail}")


def main():
    TESTS.mkdir(parents=True, exist_ok=True)
    for names, write in ((LOSSES, write_loss), (STEPS, write_step)):
        for number, name in enumerate(names):
            if not sys.argv[1:] or name in sys.argv[1:]:
                try:
                    write(number, name)
                except sj.ExportError as error:
                    print(f"{name}: {error}")
    write_table()


if __name__ == "__main__":
    main()
