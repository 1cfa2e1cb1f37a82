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
        plans = {}
        for plan in answer["plans"]:
            if plan["outcome"] == "fits":
                chosen, flags = layout(plan)
                key = f"{chosen.name} {plan['flags']}" if chosen.name in plans else chosen.name
                plans[key] = chosen, flags, [*plan["flags"].split(), f"--machine={machine}"]

        def contest(keys):
            for key in keys:
                chosen, flags, arguments = plans[key]
                bench.enter(key, mlp, chosen, arguments=arguments, model_flags=flags)
            result = bench.hold()
            for key in keys:
                if error := result.error(key):
                    raise RuntimeError(f"{name}, {key}: {error}")
            return result

        advised, result = next(iter(plans)), contest(plans)
        fastest = min(plans, key=result.seconds)
        first = result.seconds(advised) / result.seconds(fastest)
        # The fastest of many was lucky, too: the second contest does not know of that.
        if fastest != advised:
            result = contest([advised, fastest])
        yield Line(f"{name}: {advised}", f"{fastest}, fastest of {len(plans)}", result.seconds(advised), result.seconds(fastest), "s",
                   result.seconds(advised) / result.seconds(fastest), 1.05, False, f"{first:.3g}x in the contest of all")  # fmt: skip
