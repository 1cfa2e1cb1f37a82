"""The plan that shardc-advise advises beside the fastest of those that it ranks, measured here."""

import json
import os

import workloads as w
from estimates import chosen_models
from table import Line

DEVICES = 8
# Those of a mesh from outside to inside, in shardc-advise.
AXES = ("stage", "replica", "shard", "data", "model")


def layout(plan):
    """A plan of shardc-advise as shardc-gen and shardc-compile make it."""
    mesh = ",".join(f"{axis}={plan['mesh'][axis]}" for axis in AXES if axis in plan["mesh"])
    strategy = "none" if plan["strategy"] == "cheapest" else plan["strategy"]
    name = f"{plan['strategy']} {mesh}"
    if plan["microbatches"] > 1:
        name += f", {plan['microbatches']} microbatches"
    flags = []
    if "stage" in plan["mesh"]:
        name += f", {plan['schedule']} {plan['virtual_stages']}"
        flags = [f"--pipeline-schedule={plan['schedule']}", f"--virtual-stages={plan['virtual_stages']}"]
    return w.Layout(name, strategy, mesh, plan["microbatches"]), flags


def advice(bench):
    machine = os.path.join(bench.compiler.folder, "machine.json")
    bench.compiler.measure_machine(machine)
    for name, mlp in chosen_models(bench).items():
        model = bench.compiler.model(mlp, w.ONE)
        answer = json.loads(bench.compiler.run("shardc-advise", model, f"--devices={DEVICES}", f"--machine={machine}", "--json"))
        # In the order of their estimates; pipelines that were slower than ten of these were left out.
        plans = [plan for plan in answer["plans"] if plan["outcome"] == "fits"]
        keys = []
        for plan in plans:
            chosen, flags = layout(plan)
            keys.append(chosen.name)
            bench.enter(chosen.name, mlp, chosen, arguments=[*plan["flags"].split(), f"--machine={machine}"], model_flags=flags)
        result = bench.hold()
        for key in keys:
            if error := result.error(key):
                raise RuntimeError(f"{name}, {key}: {error}")
        fastest = min(keys, key=result.seconds)
        yield Line(f"{name}: {keys[0]}", f"{fastest}, fastest of {len(keys)}", result.seconds(keys[0]),
                   result.seconds(fastest), "s", result.seconds(keys[0]) / result.seconds(fastest), 1.05, False)  # fmt: skip
