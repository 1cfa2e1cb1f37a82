"""The measurements by section: contests, and the lines they give."""

import json
import os
import statistics
import subprocess
import tempfile
import time

import workloads as w
from advice import advice
from bench import MPI_ENVIRONMENT, SOURCE, jax_environment
from busy import busy
from contest import Entrant, Server, attempt
from estimates import estimates
from growth import growth
from micro import all_reduce_lines, measure_micro, overhead_lines, size, update_lines
from table import Line


def device_lines(bench, result, name, mlp):
    """More devices against one at the same global batch."""
    return [bench.line(result, f"{name}, {layout.name}", mlp, layout.name, "itself on one device", w.ONE.name, 1.10, False)
            for layout in (w.DP2, w.DP4, w.DP8, w.FSDP8, w.TP8)]  # fmt: skip


def enter_layouts(bench, mlp):
    for layout in (w.ONE, w.DP2, w.DP4, w.DP8, w.FSDP8, w.TP8):
        bench.enter(layout.name, mlp, layout)


def notebook(bench):
    mlp, name = w.NOTEBOOK, w.NOTEBOOK_NAME
    enter_layouts(bench, mlp)
    goals = [(w.DP8, 15, 10), (w.FSDP8, 15, 10), (w.ONE, 3, 3)]
    for layout, _, _ in goals:
        bench.enter_jax("JAX " + layout.name, mlp, layout, scan=50)
    result = bench.hold()
    for layout, loop, scan in goals:
        for peer, suffix, goal in (("JAX, step loop", "", loop), ("JAX, lax.scan", " scan", scan)):
            yield bench.line(result, f"{name}, {layout.name}", mlp, layout.name, peer, f"JAX {layout.name}{suffix}", goal, True)
    yield from device_lines(bench, result, name, mlp)


def images(bench):
    mlp, name = w.IMAGES, w.IMAGES_NAME
    enter_layouts(bench, mlp)
    bench.enter_gemms("gemms", mlp)
    goals = [(w.ONE, 2), (w.DP8, 6), (w.FSDP8, 2.5), (w.TP8, 2)]
    for layout, _ in goals:
        bench.enter_jax("JAX " + layout.name, mlp, layout)
    result = bench.hold()
    for layout, goal in goals:
        yield bench.line(result, f"{name}, {layout.name}", mlp, layout.name, "JAX, step loop", "JAX " + layout.name, goal, True)
    yield bench.line(result, f"{name}, one device", mlp, w.ONE.name, "oneDNN, its GEMMs alone", "gemms", 1.15, False)
    yield from device_lines(bench, result, name, mlp)


def wide(bench):
    mlp, name = w.WIDE, w.WIDE_NAME
    enter_layouts(bench, mlp)
    bench.enter_gemms("gemms", mlp)
    bench.enter_jax("JAX", mlp, w.ONE)
    result = bench.hold()
    yield bench.line(result, f"{name}, one device", mlp, w.ONE.name, "JAX, step loop", "JAX", 1.8, True)
    yield bench.line(result, f"{name}, one device", mlp, w.ONE.name, "oneDNN, its GEMMs alone", "gemms", 1.05, False)
    yield from device_lines(bench, result, name, mlp)


def bf16(bench):
    """Steps in bf16 beside those in f32: twice the multiply-adds, where the CPU has them."""
    goal = 1.7 if has_cpu_flag("avx512_bf16") and bench.cpu_target != "x86-64-v3" else 0.8
    for mlp, name in (w.IMAGES, w.IMAGES_NAME), (w.WIDE, w.WIDE_NAME):
        layouts = (w.ONE, w.DP8)
        for layout in layouts:
            bench.enter(layout.name, mlp, layout)
            bench.enter(layout.name + " bf16", mlp, layout, arguments=("--dtype=bf16",))
        result = bench.hold()
        for layout in layouts:
            line = bench.line(result, f"{name}, {layout.name}, bf16", mlp, layout.name + " bf16", "itself in f32", layout.name, goal, True)
            line.limit = line.limit.replace("peak FLOP/s", "peak FLOP/s in f32")
            yield line


def has_cpu_flag(name):
    with open("/proc/cpuinfo") as file:
        return any(name in line.split() for line in file if line.startswith("flags"))


def epoch(bench):
    """Whole epochs of batches gathered from the data, with evaluation on the test
    part; seconds per train step. In the second contest files are read anew."""
    mlp, layouts = w.DIGITS, (w.DP8, w.FSDP8)
    data = os.path.join(SOURCE, "data")
    for what, argument in ("epoch and evaluation", ""), ("the same and reading the file", data):
        for layout in layouts:
            bench.enter(layout.name, mlp, layout)
            bench.enter_jax("JAX " + layout.name, mlp, layout)
        for entrant in bench.entrants.values():
            entrant.verb, entrant.argument = "epoch", data
            attempt(entrant)
            entrant.argument = argument
        result = bench.hold()
        for layout in layouts:
            yield bench.line(result, f"digits, {what}, {layout.name}", mlp, layout.name, "JAX, step loop",
                             "JAX " + layout.name, 15, True, mlp.flops_with_evaluation(w.DIGITS_ROWS))  # fmt: skip


def pipelines(bench):
    """Stages on virtual devices against the same microbatches on one."""
    for name, mlp in ((w.NOTEBOOK_NAME, w.NOTEBOOK), (w.IMAGES_NAME, w.IMAGES)):
        for layout in (w.ONE_IN_PARTS, w.PP2, w.PP4):
            bench.enter(layout.name, mlp, layout)
        result = bench.hold()
        for layout in (w.PP2, w.PP4):
            yield bench.line(result, f"{name}, {layout.name}", mlp, layout.name, "itself on one device",
                             w.ONE_IN_PARTS.name, 1.15, False)  # fmt: skip


# An unusual case, and its usual neighbour.
SHAPES = [
    ("61-127-31-7, batch 251", w.Mlp((61, 127, 31, 7), 251), "64-128-32-8, batch 256", w.Mlp((64, 128, 32, 8), 256)),
    ("787-1021-1031-11, batch 127", w.Mlp((787, 1021, 1031, 11), 127), "784-1024-1024-10, batch 128", w.Mlp((784, 1024, 1024, 10), 128)),
    ("256-256-1-256-16, batch 128", w.Mlp((256, 256, 1, 256, 16), 128), "256-256-8-256-16", w.Mlp((256, 256, 8, 256, 16), 128)),
    ("512-512-1, batch 256", w.Mlp((512, 512, 1), 256), "512-512-8", w.Mlp((512, 512, 8), 256)),
    ("96 layers of 64, batch 256", w.Mlp((64,) * 97, 256), "6 layers of 64", w.Mlp((64,) * 7, 256)),
    ("96 layers of 256, batch 128", w.Mlp((256,) * 97, 128), "6 layers of 256", w.Mlp((256,) * 7, 128)),
]  # fmt: skip


def shapes(bench):
    """Time per useful FLOP; a cliff is twice the neighbour's."""
    for name, odd, neighbour_name, neighbour in SHAPES:
        for layout in (w.ONE, w.DP8):
            bench.enter("odd", odd, layout)
            bench.enter("neighbour", neighbour, layout)
            result = bench.hold()
            line = bench.line(result, f"{name}, {layout.name}", odd, "odd", neighbour_name, "neighbour", 2.0, False)
            line.per_flop(odd.flops(), neighbour.flops())
            yield line


def wall_seconds(bench, command):
    times = []
    for _ in range(min(bench.rounds, 7)):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times) if bench.best else statistics.median(times)


def compilation(bench):
    """Whole processes, from their start to their end."""
    deep = w.Mlp((10, *(256,) * 95, 1), 128, optimizer="adamw")
    slim = w.Mlp((10, *(64,) * 95, 1), 128)
    for name, mlp, goal in (("10-32-16-1", w.NOTEBOOK, 0.3), ("96 layers of 256", deep, 3.0)):
        for layout in (w.DP8, w.FSDP8):
            model = bench.compiler.model(mlp, layout)
            seconds = wall_seconds(bench, [bench.compiler.tool("shardc-compile"), model, "-o", model + ".shardc"])
            yield Line(f"compiling {name}, {layout.name}", "", seconds, None, "s", seconds, goal, False)
    # To the end of the process after one step, which is later than its start; and
    # of a model whose memory takes longest, to a plan that is ready to run.
    for name, mlp, flags in (("10-32-16-1, to step 1", w.NOTEBOOK, []), ("96 layers of 64, to step 1", slim, []),
                             ("96 layers of 256, loaded", deep, ["--dry-run"])):  # fmt: skip
        run = [bench.compiler.tool("shardc-run"), bench.compiler.model(mlp, w.DP8), "--data=synthetic:quadratic",
               "--steps=1", f"--plan-cache={os.path.join(bench.compiler.folder, 'cache')}", *flags]  # fmt: skip
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = wall_seconds(bench, run)
        yield Line(f"second run of {name}", "", seconds, None, "s", seconds, 0.05, False)


def memory(bench):
    """The growth of processes, against the reports of plans and against one device."""
    name, facts = "1024-2048-1024 AdamW", {}
    for layout in (w.ONE, w.DP8):
        bench.shardc.ask(f"plan m {bench.compiler.plan(w.BUCKET, layout)}")
        facts[layout] = bench.shardc.ask("memory m")
        bench.shardc.stop()
    for layout, fact in facts.items():
        reported = fact["reported_bytes"]
        yield Line(f"memory, {name}, {layout.name}", "the report", fact["grown_bytes"], reported, "B",
                   fact["grown_bytes"] / reported, 1.05, False)  # fmt: skip
    # The batch is the same one, so whatever eight devices need in addition counts
    # as copies of parameters and states.
    one = facts[w.ONE]["persistent_bytes"]
    held = one + max(0, facts[w.DP8]["grown_bytes"] - facts[w.ONE]["grown_bytes"])
    yield Line(f"parameters and states, {name}, DP 8", "itself on one device", held, one, "B", held / one, 1.3, False)


def micro(bench):
    updates = {name: bench.compiler.plan(mlp, w.ONE) for name, mlp in (("bucket of 16 MiB", w.BUCKET), ("96 tensors, 16 MiB", w.TENSORS))}
    figures = measure_micro(bench.compiler.tool("shardc-bench-micro"), updates.values(), bench.quick, bench.best)
    yield from all_reduce_lines(figures)
    yield from overhead_lines(figures, bench.limits)
    yield from update_lines(figures, updates)


def processes(bench):
    """Two processes beside one with two workers, and beside JAX with as many; then
    all-reduces between them beside those of MPI."""
    contest = bench.compiler.tool("shardc-bench-allreduce")
    if not os.path.exists(contest):
        yield Line("2 processes", "", None, None, "s", None, 0, False, note="MPI is not installed")
        return
    for name, mlp, goal in ((w.NOTEBOOK_NAME, w.NOTEBOOK, 3.0), (w.IMAGES_NAME, w.IMAGES, 1.3), (w.WIDE_NAME, w.WIDE, 1.3)):
        layouts = (w.DP2, w.DP8)
        for layout in layouts:
            bench.enter(layout.name, mlp, layout)
            bench.enter("2 x " + layout.name, mlp, layout, bench.shardc_processes)
            if mlp is not w.WIDE:
                bench.enter_jax("JAX " + layout.name, mlp, layout, processes=True)
        result = bench.hold()
        for layout in layouts:
            workload = f"{name}, {layout.name}, 2 processes"
            yield bench.line(result, workload, mlp, "2 x " + layout.name, "itself in one process", layout.name, goal, False)
            if mlp is not w.WIDE:
                yield bench.line(result, workload, mlp, "2 x " + layout.name, "JAX, 2 processes, gloo", "JAX " + layout.name, 10, True)
    command = [*bench.mpirun, contest, "3" if bench.quick else "15"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **MPI_ENVIRONMENT})
    for answer in map(json.loads, done.stdout.splitlines()):
        if "error" in answer:
            raise RuntimeError(f"{' '.join(command)}: {answer['error']}")
        yield Line(f"all-reduce, 2 processes, {size(answer['bytes'])}", "MPI_Allreduce", answer["ours"], answer["mpi"], "s",
                   answer["ratio"], 1.2, False, f"{answer['bytes'] / answer['ours'] / 1e9:.3g} GB/s")  # fmt: skip


def checkpoints(bench):
    """Checkpoints of 1 GiB beside copies and streams of as many bytes, and beside other
    libraries. Each turn is one checkpoint, or one load."""
    mlp = w.Mlp((256, 256, 1), 8, optimizer="adamw") if bench.quick else w.STATE
    for layout in (w.ONE, w.TP8, w.FSDP8):
        with tempfile.TemporaryDirectory(dir=bench.compiler.folder) as folder:
            yield from checkpoint_lines(bench, mlp, layout, folder)
    with tempfile.TemporaryDirectory(dir=bench.compiler.folder) as folder:
        yield from checkpoint_peer_lines(bench, mlp, folder)


def enter_checkpoints(bench, server, prefix, turns):
    for verb, argument in turns:
        bench.entrants[f"{prefix}{verb} {argument}"] = Entrant(server, verb, argument, "")


def open_checkpoints(bench, mlp, layout, folder):
    server = Server("shardc", [bench.compiler.tool("shardc-bench-checkpoints")])
    answer = server.ask(f"plan {bench.compiler.plan(mlp, layout)} {folder}")
    return server, answer["bytes"]


def checkpoint_line(result, bytes, workload, ours, peer_name, peer, goal, at_least, note=""):
    """`ours` against `peer`: of at_least by what rate, or else by what time."""
    above, below = (peer, ours) if at_least else (ours, peer)
    seconds = result.seconds(ours)
    return Line(workload, peer_name, seconds, result.seconds(peer), "s", result.ratio(above, below), goal, at_least,
                f"{bytes / seconds / 1e9:.3g} GB/s" if seconds else "", result.error(ours) or result.error(peer) or note)  # fmt: skip


def checkpoint_lines(bench, mlp, layout, folder):
    server, bytes = open_checkpoints(bench, mlp, layout, folder)
    enter_checkpoints(bench, server, "", [("copy", "state"), ("stall", "state"), ("stream", "state"), ("write", "state"),
                                          ("read", "cold"), ("load", "cold"), ("fetch", "warm"), ("load", "warm")])  # fmt: skip
    result = bench.hold()
    server.stop()
    what = f"{size(bytes)} of state, {layout.name}"
    yield checkpoint_line(result, bytes, f"{what}: stall of a step", "stall state", "a copy in memory", "copy state", 1.2, False)
    yield checkpoint_line(result, bytes, f"{what}: writing", "write state", "a stream, fsync", "stream state", 0.8, True)
    yield checkpoint_line(result, bytes, f"{what}: loading, cold page cache", "load cold", "a stream", "read cold", 0.8, True)
    yield checkpoint_line(result, bytes, f"{what}: loading, warm page cache", "load warm", "a stream into memory", "fetch warm", 0.8, True)


def checkpoint_peer_lines(bench, mlp, folder):
    turns = [("stall", "state"), ("write", "state"), ("load", "cold"), ("load", "warm")]
    server, bytes = open_checkpoints(bench, mlp, w.ONE, folder)
    enter_checkpoints(bench, server, "", turns)
    program = os.path.join(SOURCE, "benchmarks", "goals", "checkpoint_peers.py")
    servers, names = [server], {"Orbax": "orbax", "torch": "torch"}
    shapes = ",".join(map(str, mlp.layers))
    for name, module in names.items():
        if not bench.peers or not os.path.exists(bench.peers):
            continue
        place = os.path.join(folder, module)
        os.mkdir(place)
        servers.append(Server(name, [bench.peers, program, module, place, shapes], jax_environment(1)))
        enter_checkpoints(bench, servers[-1], name + " ", turns)
    result = bench.hold()
    for each in servers:
        each.stop()
    for name, peer in (("Orbax", "Orbax, no fsync"), ("torch", "torch.distributed.checkpoint")):
        for verb, what in (("stall state", "stall of a step"), ("write state", "writing"),
                           ("load cold", "loading, cold page cache"), ("load warm", "loading, warm page cache")):  # fmt: skip
            yield checkpoint_line(result, bytes, f"{size(bytes)} of state: {what}", verb, peer, f"{name} {verb}", 1, True,
                                  "not run: --with-checkpoint-peers installs it")  # fmt: skip


SECTIONS = {"micro": micro, "notebook": notebook, "images": images, "wide": wide, "bf16": bf16, "epoch": epoch, "shapes": shapes, "growth": growth,
            "busy": busy, "pipelines": pipelines, "compilation": compilation, "memory": memory, "processes": processes,
            "estimates": estimates, "advice": advice, "checkpoints": checkpoints}  # fmt: skip
# Those that compare steps, which run the kernels of --cpu-target.
OF_KERNELS = ("notebook", "images", "wide", "bf16", "epoch", "shapes", "growth", "busy", "pipelines", "processes")
