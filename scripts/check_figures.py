"""No output of a plan contradicts another one.

Compiles and trains programs of all kinds, and compares the figures of the JSON report,
the text reports, the page, the explanation, and of what the runtime counts, traces and
measures: bytes on the wire in all and by axis, collectives, memory, FLOPs, times by the
estimate, a pipeline's bubble. The page is read without a browser.
"""

import argparse
import concurrent.futures
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

from report_page import Page

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = ROOT + "/test/golden/jax"
STEPS = 3


class Program:
    """A model with the options and the data that it is run with."""

    def __init__(self, name, gen="", options="", data="", model=None, run=""):
        self.name, self.gen, self.options = name, gen.split(), options.split()
        self.data, self.model, self.run = data, model, run.split()


NOTEBOOK, DIGITS = "--layers=10,32,16,1", "--layers=64,48,10 --loss=softmax_cross_entropy"
PROGRAMS = [
    Program("one device", f"{NOTEBOOK} --strategy=none --mesh=data=1", data="real 10,1"),
    Program("notebook dp", f"{NOTEBOOK} --strategy=dp --mesh=data=8", data="real 10,1"),
    Program("notebook tp", f"{NOTEBOOK} --strategy=tp --mesh=model=4 --optimizer=momentum",
            data="real 10,1"),
    Program("digits fsdp, regather", f"{DIGITS} --strategy=fsdp --mesh=data=4",
            "--regather", "labels 64,10"),
    Program("digits fsdp+tp, uneven", f"{DIGITS} --strategy=fsdp+tp --mesh=data=2,model=3 "
            "--optimizer=adam", data="labels 64,10"),
    Program("hsdp, bf16", f"{NOTEBOOK} --strategy=hsdp --mesh=replica=2,data=2 "
            "--optimizer=adamw --clip-norm=1", "--dtype=bf16", "real 10,1"),
    Program("fsdp, microbatches", f"{NOTEBOOK} --strategy=fsdp --mesh=data=4 --microbatches=4",
            data="real 10,1"),
    Program("layers recomputed", "--layers=16,32,32,32,32,8 --strategy=zero1 --mesh=data=2 "
            "--optimizer=adam --recompute=layer --layer-norm", data="real 16,8"),
    Program("gradient accumulation", data="real 16,8",
            model=ROOT + "/test/Pipelines/scenarios/02-gradient-accumulation.mlir"),
    Program("cheapest", f"{NOTEBOOK} --strategy=fsdp+tp --mesh=data=2,model=2",
            "--partition=cheapest", "real 10,1"),
    Program("pipeline dp", "--layers=16,32,32,8 --strategy=dp+pp --mesh=data=2,stage=2 "
            "--microbatches=4", data="real 16,8"),
    Program("pipeline tp, interleaved", "--layers=16,32,32,32,32,8 --strategy=tp+pp "
            "--mesh=model=2,stage=2 --microbatches=4 --pipeline-schedule=interleaved "
            "--virtual-stages=2 --recompute=stage", data="real 16,8"),
    Program("pipeline fsdp, zero-bubble", "--layers=16,32,32,32,8 --strategy=fsdp+pp "
            "--mesh=data=2,stage=2 --microbatches=4 --pipeline-schedule=zero-bubble",
            data="real 16,8"),
    Program("imported from JAX", model=GOLDEN + "/step_adam/model.mlir",
            options="--mesh=data=2,model=2", run=f"--data={GOLDEN}/step_adam/data.npz "
            f"--load-params={GOLDEN}/step_adam/init.npz"),
]


class Contradiction(Exception):
    pass


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Contradiction(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def check_equal(what, expected, **found):
    """Each output in `found` has to say the same."""
    for output, value in found.items():
        if value != expected:
            raise Contradiction(f"{what}: {output} has {value!r}, --json {expected!r}")


def check_near(what, expected, digits=None, **found):
    """The same up to rounding, of the sum or of printing that many digits behind the point."""
    for output, value in found.items():
        slack = 1e-9 * abs(expected) if digits is None else 0.5001 * 10 ** -digits
        if abs(value - expected) > slack:
            raise Contradiction(f"{what}: {output} has {value!r}, --json {expected!r}")


def find(pattern, text):
    """The groups of the only match, numbers as such."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) != 1:
        raise Contradiction(f"{len(matches)} matches of {pattern!r} in:\n{text}")
    groups = matches[0] if isinstance(matches[0], tuple) else (matches[0],)
    return [float(it) if re.fullmatch(r"[\d.]+", it) else it for it in groups]


def split_reports(text):
    """The reports of a plan by their first words."""
    beginnings = {"comm": "Communication of train_step", "pipeline": "Pipeline",
                  "memory": "Memory per device:", "shardings": "Shardings over mesh",
                  "explain": "Why train_step communicates"}
    places = [re.search("^" + it, text, re.MULTILINE).start() for it in beginnings.values()]
    return {name: text[begin:end] for name, begin, end in
            zip(beginnings, places, places[1:] + [len(text)])}


class Outputs:
    """Everything that the tools say of a program."""

    def __init__(self, program, folder):
        model, plan, page = (f"{folder}/{it}" for it in ("m.mlir", "m.shardc", "m.html"))
        if program.gen:
            call("shardc-gen", *program.gen, "-o", model)
        else:
            model = program.model
        run = [f"--steps={STEPS}", "--no-alias-replicas", *program.run]
        if program.data:
            kind, layers = program.data.split()
            call("make-data", kind, "256", layers, f"{folder}/d.npz")
            run.append(f"--data={folder}/d.npz")
        # The plan holds the causes that --explain searches for.
        self.explained = json.loads(call("shardc-compile", model, "-o", plan, "--explain",
                                         "--json", *program.options))
        self.text = split_reports(call(
            "shardc-compile", plan, "--report=comm,pipeline,memory,shardings", "--explain"))
        self.dry = json.loads(call("shardc-run", plan, "--dry-run", "--json"))
        self.checked = json.loads(call("shardc-run", plan, "--check-plan", "--json"))
        self.checked_text = call("shardc-run", plan, "--check-plan")
        self.run = json.loads(call(
            "shardc-run", plan, *run, f"--metrics={folder}/m.jsonl", "--json", "--profile",
            f"--trace={folder}/t.json.gz", f"--trace-steps={STEPS}:{STEPS}"))
        self.json = json.loads(call("shardc-compile", plan, "--json", "--report=html", "-o", page,
                                    f"--trace={folder}/t.json.gz"))
        self.page = Page(page)
        with open(f"{folder}/m.jsonl", encoding="utf-8") as file:
            self.metrics = [json.loads(line) for line in file]
        with gzip.open(f"{folder}/t.json.gz", "rt", encoding="utf-8") as file:
            self.events = json.load(file)["traceEvents"]

    def get_spans(self, track, *categories):
        """The spans on tracks whose names begin so."""
        tracks = {it["tid"] for it in self.events if it.get("name") == "thread_name"
                  and it["args"]["name"].startswith(track)}
        return [it for it in self.events if it["ph"] == "X" and it["tid"] in tracks
                and it["cat"] in categories]

    def get_executions(self):
        """Of each execution of a step the arguments, which all workers' spans have."""
        return {(it["args"]["step"], it["args"]["loop"]): {"name": it["name"], **it["args"]}
                for it in self.get_spans("worker", "compute", "communication")}.values()

    def get_counter(self, name):
        return [it["args"]["value"] for it in self.events
                if it["ph"] == "C" and it["name"].startswith(name)]


def get_ranks(report):
    """Of a pipeline its ranks, else the plan."""
    return report["pipeline"]["ranks"] if "pipeline" in report else [report]


def check_communication(it):
    report = it.json
    wire, collectives = report["wire_bytes_per_device"], report["collectives"]
    isPipeline = "pipeline" in report
    text = it.text["comm"].split("Communication of evaluate")[0]
    totals = [int(one) for one in re.findall(r"total: (\d+) bytes on the wire", text)]
    check_equal("bytes on the wire of ranks", [one["wire_bytes_per_device"]
                                               for one in get_ranks(report)], text=totals)
    ofRanks = [0] * len(totals)
    for one in collectives:
        ofRanks[one.get("rank", 0)] += one["wire_bytes"]
    check_equal("sum of collectives", totals, collectives=ofRanks)
    check_equal("bytes on the wire", wire, text=max(totals), page=it.page.facts["sent by a device"],
                section=it.page.paragraphs["communication"][0],
                dry_run=it.dry["wire_bytes_per_step"], run=it.run["wire_bytes_per_step"],
                explanation=it.explained["explanation"]["programs"][0]["cost"]
                ["wire_bytes_per_device"])
    check_equal("bytes on the wire by step", [wire] * STEPS,
                metrics=[one["wire_bytes"] for one in it.metrics])
    groups = it.page.get_rows("collective")
    check_equal("number of collectives", len(collectives), page=sum(one[0] for one in groups),
                text=len(re.findall(r"^  (all_|reduce_scatter |collective_permute |send )", text,
                                    re.MULTILINE)))
    check_equal("bytes of collectives", sum(totals), page=sum(one[1] for one in groups))
    if not isPipeline:
        check_equal("number of collectives", len(collectives),
                    dry_run=it.dry["collectives_per_step"])


def check_trace(it):
    report = it.json
    executions = it.get_executions()
    all_ranks = sum(one["wire_bytes_per_device"] for one in get_ranks(report))
    sent = [one for one in executions if "wire bytes per device" in one]
    check_equal("bytes on the wire, all ranks", all_ranks,
                counter=max(it.get_counter("wire bytes") or [0]))
    flops = sum(one["matmul_flops_per_device"] for one in get_ranks(report))
    devices = report["num_devices"] / len(get_ranks(report))
    check_equal("FLOPs of all devices", flops * devices,
                trace=sum(one.get("flops", 0) for one in executions),
                profile=sum(one["matmul_flops"] for one in it.run["profile"]["commands"]))
    if "pipeline" in report:
        # Messages whose ends lie in one place are no commands.
        return
    check_equal("bytes on the wire", all_ranks,
                trace=sum(one["wire bytes per device"] for one in sent),
                profile=sum(one["wire_bytes_per_device"]
                            for one in it.run["profile"]["commands"]))
    # "all_reduce over data,model" and "send to ...".
    def add_up(pairs):
        sums = {}
        for name, count in pairs:
            sums[name] = sums.get(name, 0) + count
        return sums
    by_axes = add_up((f"{one['kind']} over {','.join(one['axes'])}" if one["kind"] != "send"
                      else "send", one["wire_bytes"]) for one in collectives_of(report))
    check_equal("bytes by kind and axes", by_axes, trace=add_up(
        (one["name"].split(" to ")[0], one["wire bytes per device"]) for one in sent))
    check_equal("runs of collectives", sum(one["runs"] for one in collectives_of(report)),
                trace=len(sent))


def check_measured(it):
    """The page's table of a trace of one step."""
    run, = it.get_spans("steps", "run")
    check_equal("the measured step", run["dur"], page=it.page.paragraphs["time"][-1])
    workers = len({one["tid"] for one in it.events if one.get("name") == "thread_name"
                   and one["args"]["name"].startswith("worker")})
    measured = dict.fromkeys(("forward", "backward", "update", "communication", "wait"), 0)
    for span in it.get_spans("worker", "compute", "communication", "wait"):
        if run["ts"] <= span["ts"] <= run["ts"] + run["dur"]:
            part = span["args"]["part"] if span["cat"] == "compute" else span["cat"]
            measured[part] += span["dur"] / workers
    estimated = dict.fromkeys(measured, 0)
    for op in it.json["time"]["ops"] if "pipeline" not in it.json else ():
        part = "communication" if op["communicates"] else op["part"]
        estimated[part] += op["microseconds"]
    rows = it.page.get_rows("compared-part")
    for part, row in zip(measured, rows):
        check_near(f"measured {part}", measured[part], page=row[-1])
        if len(row) > 1:
            check_near(f"estimated {part}", estimated[part], page=row[0])
    check_near("the measured parts", max(run["dur"], sum(measured.values())),
               page=sum(row[-1] for row in rows))
    if "pipeline" in it.json:
        busy = sum(one["busy_microseconds"] for one in it.json["pipeline"]["ranks"])
        check_near("tasks", busy, page=sum(row[0] for row in it.page.get_rows("compared-stage")))
        return
    # Each collective has both times; what is sent nowhere has neither.
    rows = it.page.get_rows("compared-collective")
    check_equal("collectives with two times", [2] * len(rows), page=[len(row) for row in rows])
    check_near("collectives", sum(one["microseconds"] for one in it.json["collectives"]),
               page=sum(row[0] for row in rows))
    check_near("communication", measured["communication"], page=sum(row[1] for row in rows))


def collectives_of(report):
    return [one for one in report["collectives"] if one["wire_bytes"] > 0]


def check_flops(it):
    report = it.json
    ranks = [one["matmul_flops_per_device"] for one in get_ranks(report)]
    text = it.text["comm"].split("Communication of evaluate")[0]
    check_equal("FLOPs of ranks", ranks,
                text=[int(one) for one in re.findall(r"wire, (\d+) matmul FLOPs", text)])
    check_equal("FLOPs", report["matmul_flops_per_device"], ranks=max(ranks),
                page=it.page.facts["FLOPs of matmuls per device"],
                explanation=it.explained["explanation"]["programs"][0]["cost"]
                ["matmul_flops_per_device"])
    if "pipeline" in report:
        return
    check_near("FLOPs of the estimate", report["matmul_flops_per_device"],
               ops=sum(one.get("gemm_flops", 0) for one in report["time"]["ops"]))
    redundant = report["redundant_matmul_flops_per_device"]
    check_equal("redundant FLOPs", redundant,
                text=int(find(r"of which (\d+) redundant", text)[0]),
                page=it.page.facts["of these redundant"] if redundant else 0)


def check_memory(it):
    report = it.json
    peak = report["peak_bytes_per_device"]
    ranks = get_ranks(report)
    text = it.text["memory"]
    arenas = [int(one) for one in re.findall(r"^Memory per device.*: (\d+) bytes", text,
                                             re.MULTILINE)]
    check_equal("memory of ranks", [one["peak_bytes_per_device"] for one in ranks],
                text=arenas[-len(ranks):])
    check_equal("memory", peak, largest=max(one["peak_bytes_per_device"] for one in ranks),
                text=arenas[0], page=it.page.facts["memory per device"],
                section=it.page.paragraphs["memory"][0], dry_run=it.dry["peak_bytes_per_device"],
                run=it.run["peak_bytes_per_device"])
    kinds = ["parameters", "gradients", "optimizer", "activations", "inputs", "workspace"]
    tables = it.page.get_tables("memory", "At the peak")
    largest = it.page.get_tables("memory", "The largest buffers")
    entries = [int(one) for one in re.findall(r"^  (?:" + "|".join(kinds) + r") +(\d+)$", text,
                                              re.MULTILINE)]
    for number, rank in enumerate(ranks):
        memory = rank["memory"]
        check_equal("memory by kind", {kind: memory[kind] for kind in kinds},
                    text=dict(zip(kinds, entries[6 * number:6 * number + 6])),
                    page={name: values[0] for name, values in tables[number]})
        check_equal("the largest buffers", [[one["name"], [one["bytes"]]]
                                            for one in memory["largest"]], page=largest[number])
        over_time = memory["over_time"]
        used = [0] * over_time["ops"]
        for buffer in over_time["buffers"]:
            for op in range(buffer["first"], buffer["last"] + 1):
                used[op] += buffer["bytes"]
        check_equal("op of the peak", used.index(max(used)), over_time=over_time["peak"])
        check_equal("sum of the kinds", rank["peak_bytes_per_device"],
                    kinds=sum(memory[kind] for kind in kinds))
        name = "arena bytes with values"
        if "pipeline" in report:
            name += f", pipeline rank {number}"
        traced = max(it.get_counter(name))
        if not max(used) <= traced <= rank["peak_bytes_per_device"]:
            raise Contradiction(f"arena: the trace has {traced}, over time {max(used)}, "
                                f"the peak {rank['peak_bytes_per_device']}")
    check_equal("memory by kind", {kind: report["memory"][kind] for kind in kinds},
                dry_run=it.dry["memory"])
    check_equal("buffers on the page", [
        [[one["bytes"], one["first"], one["last"]] for one in rank["memory"]["over_time"]["buffers"]]
        for rank in ranks], page=[[one[2:5] for one in memory["buffers"]]
                                  for memory in it.page.data["memory"]])


def check_shardings(it):
    tensors = it.json["shardings"]
    rows = it.page.tables["shardings"]
    check_equal("bytes of tensors", [[one["name"], one["bytes"]] for one in tensors],
                page=[[name, values[-1]] for name, values in
                      [row for caption, rows in rows for row in rows if row[1]]][:len(tensors)])
    text = it.text["shardings"].split("Devices that hold")[0]
    check_equal("bytes of tensors", [one["bytes"] for one in tensors],
                text=[int(line.split()[-1]) for line in text.splitlines()[2:]])


def check_times(it):
    report, time = it.json, it.json["time"]
    fields = ["compute", "memory", "communication"]
    table, = it.page.get_tables("overview", "Estimated time of a step")
    check_equal("parts of the time", [[one, [time[one + "_microseconds"]]] for one in fields],
                page=table)
    check_near("sum of the parts", time["microseconds"],
               parts=sum(time[one + "_microseconds"] for one in fields))
    overlapped = time["overlapped_microseconds"]
    text = it.text["comm"].split("Communication of evaluate")[0]
    estimates = re.findall(r"estimated on cpu: ([\d.]+) us = compute ([\d.]+) \+ memory ([\d.]+)"
                           r" \+ communication ([\d.]+); with overlap ([\d.]+) us", text)
    if "pipeline" not in report:
        for found, expected in zip(map(float, estimates[0]), [
                time["microseconds"], *(time[one + "_microseconds"] for one in fields),
                overlapped]):
            check_near("times", expected, digits=2, text=found)
        check_near("estimated time", overlapped, section=it.page.paragraphs["time"][0])
        check_near("time of communication", time["communication_microseconds"],
                   section=it.page.paragraphs["communication"][1],
                   collectives=sum(one["microseconds"] for one in report["collectives"]),
                   page=sum(one[2] for one in it.page.get_rows("collective")),
                   ops=sum(one["microseconds"] for one in time["ops"] if one["communicates"]))
    check_equal("the longest ops", sorted((one["microseconds"] for one in time["ops"]),
                                          reverse=True)[:12],
                page=[one[0] for one in it.page.get_rows("op")])
    explained = it.explained["explanation"]["programs"][0]["cost"]["microseconds"]
    # Without a pipeline that is before kernels are formed, as for changes on trial.
    if "pipeline" in report:
        check_near("time of the explanation", report["pipeline"]["step_microseconds"],
                   explanation=explained)
    check_near("time of the explanation", explained, digits=1,
               text=find(r"^Why train_step communicates, .* ([\d.]+) us on cpu$",
                         it.text["explain"])[0])
    estimate = report["pipeline"]["step_microseconds"] if "pipeline" in report else overlapped
    check_near("estimated time of a step", estimate,
               profile=it.run["profile"]["estimated_seconds"] * 1e6,
               page=it.page.facts["a step, estimated on cpu"])
    cost = report.get("cost")
    if cost and cost["plan"] == "follow":
        check_near("cost", cost["cost"] * 1e6, digits=2,
                   text=find(r"by objective time: ([\d.]+) us; the cheapest", text)[0])
        check_near("cost", cost["cost"] * 1e6, step=estimate)


def check_pipeline(it):
    pipeline = it.json.get("pipeline")
    if not pipeline:
        return
    text = it.text["pipeline"]
    makespan, bubble = find(r"makespan of the tasks: ([\d.]+) us, bubble ([\d.]+) %", text)
    check_near("makespan", pipeline["makespan_microseconds"], digits=2, text=makespan)
    check_near("bubble", 100 * pipeline["bubble"], digits=1, text=bubble,
               page=find(r"bubble ([\d.]+) %: stage", it.page.text)[0])
    checked, = [one for one in it.checked["pipelines"] if one["name"] == "train_step"]
    check_near("bubble", pipeline["bubble"], check_plan=checked["bubble"],
               run=it.run["pipeline"]["predicted_bubble"])
    check_near("bubble", 100 * pipeline["bubble"], digits=1, check_plan=find(
        r"^train_step +joined: .* bubble ([\d.]+) % \(estimated\)$", it.checked_text)[0])
    check_near("makespan", pipeline["makespan_microseconds"],
               run=1e6 * it.run["pipeline"]["predicted_makespan_seconds"])
    ranks = pipeline["ranks"]
    check_equal("figures of ranks", [[one["busy_microseconds"], one["peak_bytes_per_device"]]
                                     for one in ranks], page=it.page.get_rows("rank"))
    check_near("bubble", pipeline["bubble"],
               ranks=1 - sum(one["busy_microseconds"] for one in ranks) / len(ranks) /
               pipeline["makespan_microseconds"])
    tasks = {one["args"]["task"] for one in it.get_spans("worker", "compute")
             if "task" in one["args"]}
    # The first stage has no gradient of its input: such a task has no command.
    check_equal("number of tasks", sum(time > 0 for one in ranks
                                       for time in one["task_microseconds"]), trace=len(tasks))


def without_reports(report):
    """What is the same of a model and of its plan, whichever reports are asked for."""
    chosen = ("collectives", "memory", "shardings", "evaluate", "predict", "explanation",
              "compile_options")
    return {name: {inner: it for inner, it in value.items() if inner != "ranks"}
            if name == "pipeline" else value for name, value in report.items()
            if name not in chosen}


def check_options(it):
    """What the plan and the run are of."""
    report = it.json
    check_equal("devices", report["num_devices"], page=it.page.facts["devices"])
    check_equal("batch size", report["batch_size"], page=it.page.facts["batch size"],
                dry_run=it.dry["batch_size"])
    check_equal("JSON of a plan", without_reports(report), model=without_reports(it.explained))


CHECKS = [check_options, check_communication, check_trace, check_measured, check_flops,
          check_memory, check_shardings, check_times, check_pipeline]


def check(program, folder):
    """What contradicts what."""
    faults = []
    os.mkdir(folder)
    try:
        outputs = Outputs(program, folder)
    except Contradiction as error:
        return [str(error)]
    for one in CHECKS:
        try:
            one(outputs)
        except Contradiction as error:
            faults.append(f"{one.__name__}: {error}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="of the programs whose names have this")
    only = parser.parse_args().only
    programs = [it for it in PROGRAMS if only in it.name]
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(check, programs, [f"{folder}/{it.name.replace(' ', '_')}"
                                             for it in programs])
        failed = False
        for program, faults in zip(programs, results):
            print(f"{program.name}: {'; '.join(faults) or 'all agree'}")
            failed = failed or bool(faults)
    sys.exit(failed)


if __name__ == "__main__":
    main()
