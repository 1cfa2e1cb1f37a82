#!/usr/bin/env python3
"""Times the compiler: all phases before codegen, over model sizes and meshes.

  benchmarks/compile_time.py [--bin build/bin] [--repeat N] [--svg FILE]

MLPs of 4 and of 96 layers (width 4096, AdamW), on meshes of two axes (fsdp+tp)
and of three (hsdp+tp), of 8 to 1048576 devices, in every mode of --partition
that this shardc-compile has. A figure is the median wall time of the process
`shardc-compile --compile-to=memory`, start-up included. Goals: 4 layers in 0.2 s,
96 in 2 s, whatever the number of devices. Plans are compared in bytes. --svg
plots the times.

Then depth: MLPs of 96, 384 and 1536 layers (width 16, SGD, fsdp over 4 devices),
with the most memory that the process takes; goals for 1536 layers: 6 s, 600 MB.
Whole plans of 500, 1000 and 2000 layers (width 8) in processor time; goals for 2000
layers: 12 s, 1 GB. What differentiation of 20 000 takes; goal: 4 GB. Depth and
devices: 384 layers over 4096 devices, fsdp and fsdp+tp, to a plan and its check by
shardc-run. And axes: one layer whose tensors are split over all of 1 to 12 axes of two devices,
with --partition=follow; goal: 2 s.

--phases prints instead the processor time of every phase for MLPs of 500 to 8000
layers (width 8): the difference of a compilation up to it and one up to the phase
before. The last row has what remains of a whole plan: the comparisons with other
plans, the explanation, machine code and the file.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

DEVICES = [2**exponent for exponent in (3, 6, 9, 12, 15, 18, 20)]
GOALS = {4: 0.2, 96: 2.0}
AXES = {2: ("fsdp+tp", ["data", "model"]), 3: ("hsdp+tp", ["replica", "shard", "model"])}
DEPTHS = [96, 384, 1536]
DEPTH_GOAL_SECONDS, DEPTH_GOAL_BYTES = 6.0, 600e6
PLAN_DEPTHS = [500, 1000, 2000]
PLAN_GOAL_SECONDS, PLAN_GOAL_BYTES = 12.0, 1e9
DIFFERENTIATED_DEPTH, DIFFERENTIATED_GOAL_BYTES = 20000, 4e9
PHASE_DEPTHS = [500, 1000, 2000, 4000, 8000]
PHASES = ["import", "differentiate", "propagate", "partition", "collectives", "kernels", "schedule",
          "memory", "codegen"]  # fmt: skip
WIDE_DEPTH = 384
WIDE_MESHES = {"fsdp": "data=4096", "fsdp+tp": "data=64,model=64"}
NUM_AXES = [1, 2, 4, 6, 8, 10, 12]
AXES_GOAL_SECONDS = 2.0
COLORS = ["#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#222222"]


def mesh_text(names, devices):
    """`devices`, a power of two, spread over the axes as evenly as can be."""
    bits = int(math.log2(devices))
    share, rest = divmod(bits, len(names))
    return ",".join(f"{name}={2 ** (share + (i < rest))}" for i, name in enumerate(names))


class Compiler:
    def __init__(self, bin_folder, folder):
        self.bin = bin_folder
        self.folder = folder

    def run(self, tool, *flags):
        command = [os.path.join(self.bin, tool), *flags]
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return seconds, done.stdout

    def modes(self):
        """The values of --partition to measure; [""] where there is no such flag."""
        _, help_text = self.run("shardc-compile", "--help")
        return ["follow", "cheapest"] if "--partition=" in help_text else [""]

    def model(self, layers, axes, devices):
        strategy, names = AXES[axes]
        path = os.path.join(self.folder, f"{layers}-{axes}-{devices}.mlir")
        self.run("shardc-gen", "--layers=" + ",".join(["4096"] * (layers + 1)),
                 f"--strategy={strategy}", f"--mesh={mesh_text(names, devices)}",
                 "--optimizer=adamw", "--batch-size=8192", "-o", path)  # fmt: skip
        return path

    def seconds(self, model, mode, repeat):
        flags = [f"--partition={mode}"] if mode else []
        output = os.path.join(self.folder, "out.mlir")
        return statistics.median(
            self.run("shardc-compile", model, "--compile-to=memory", "-o", output, *flags)[0]
            for _ in range(repeat)
        )

    def deep_model(self, layers, width=16, strategy="fsdp", mesh="data=4", batch=128):
        path = os.path.join(self.folder, f"deep-{layers}-{width}-{strategy}-{batch}.mlir")
        self.run("shardc-gen", "--layers=" + ",".join([str(width)] * (layers + 1)),
                 f"--strategy={strategy}", f"--mesh={mesh}", f"--batch-size={batch}", "-o", path)  # fmt: skip
        return path

    def many_axes_model(self, count):
        """A linear layer, everything split over all axes; as text, since no strategy does that."""
        rows = 2**count
        names = [f"a{i}" for i in range(count)]
        axes = ", ".join(f'"{name}"' for name in names)
        mesh = ", ".join(f'"{name}" = 2' for name in names)
        text = f"""#rows = #shardc.sharding<@mesh, [{{{axes}}}, {{}}]>
#vector = #shardc.sharding<@mesh, [{{{axes}}}]>

module @axes attributes {{shardc.training = #shardc.training<loss = @loss, optimizer = <sgd, learning_rate = 0.01>>}} {{
  shardc.mesh @mesh <[{mesh}]>
  func.func @loss(
      %x: tensor<{rows}x4096xf32> {{shardc.role = #shardc.input<"x">, shardc.sharding = #rows}},
      %y: tensor<{rows}x4096xf32> {{shardc.role = #shardc.label<"y">, shardc.sharding = #rows}},
      %w: tensor<4096x4096xf32> {{shardc.role = #shardc.parameter<"w", he_normal>, shardc.sharding = #rows}},
      %b: tensor<4096xf32> {{shardc.role = #shardc.parameter<"b", constant(0.0)>, shardc.sharding = #vector}}) -> tensor<f32> {{
    %z = shardc.linear %x, %w, %b : tensor<{rows}x4096xf32>, tensor<4096x4096xf32>, tensor<4096xf32> -> tensor<{rows}x4096xf32>
    %loss = shardc.mse %z, %y : tensor<{rows}x4096xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }}
}}
"""
        path = os.path.join(self.folder, f"axes-{count}.mlir")
        with open(path, "w") as file:
            file.write(text)
        return path

    def resources(self, tool, *flags):
        """Processor seconds in user mode and the most memory that a process takes."""
        command = [os.path.join(self.bin, tool), *flags]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)}: status {status}")
        return usage.ru_utime, usage.ru_maxrss * 1024

    def phases(self, model, phase):
        """The resources of a compilation up to `phase`."""
        output = os.path.join(self.folder, "out.mlir")
        return self.resources("shardc-compile", model, f"--compile-to={phase}", "-o", output)

    def plan(self, model):
        """A plan, and the resources of its compilation."""
        output = os.path.splitext(model)[0] + ".shardc"
        return output, self.resources("shardc-compile", model, "-o", output)

    def plan_bytes(self, model, mode):
        flags = [f"--partition={mode}"] if mode else []
        output = os.path.join(self.folder, "out.shardc")
        self.run("shardc-compile", model, "-o", output, *flags)
        return os.path.getsize(output)


def short(devices):
    """4Ki for 4096."""
    for unit, size in ("Mi", 2**20), ("Ki", 2**10):
        if devices >= size:
            return f"{devices // size}{unit}"
    return str(devices)


def svg(series):
    """A plot of seconds over devices, both logarithmic; a dashed line per goal."""
    width, height, left, top, right, bottom = 760, 440, 70, 20, 230, 50
    lows, highs = math.log10(0.01), math.log10(4)
    first, last = math.log2(DEVICES[0]), math.log2(DEVICES[-1])

    def x(devices):
        return left + (math.log2(devices) - first) / (last - first) * (width - left - right)

    def y(seconds):
        place = (math.log10(max(seconds, 0.01)) - lows) / (highs - lows)
        return height - bottom - place * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']  # fmt: skip
    for devices in DEVICES:
        out.append(f'<text x="{x(devices):.1f}" y="{height - bottom + 20}" text-anchor="middle">{short(devices)}</text>')
    for seconds in (0.01, 0.03, 0.1, 0.3, 1, 3):
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(seconds):.1f}" y2="{y(seconds):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds} s</text>')
    for layers, goal in GOALS.items():
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(goal):.1f}" y2="{y(goal):.1f}" '
                   'stroke="black" stroke-dasharray="4 4"/>')  # fmt: skip
        out.append(f'<text x="{left + 6}" y="{y(goal) - 5:.1f}">goal, {layers} layers</text>')
    for i, (name, points) in enumerate(series):
        color = COLORS[i % len(COLORS)]
        line = " ".join(f"{x(devices):.1f},{y(seconds):.1f}" for devices, seconds in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{width - right + 6}" y="{top + 16 * (i + 1)}" fill="{color}">{name}</text>')
    middle = (left + width - right) / 2
    out.append(f'<text x="{middle}" y="{height - 10}" text-anchor="middle">devices</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def measure_depth(compiler):
    """Prints what very deep models take; returns a line per goal that is missed."""
    slow = []

    def check(name, value, goal, unit):
        if value > goal:
            slow.append(f"{name}: {value:.2f} {unit}, goal {goal:g} {unit}")

    print(f"{'layers of 8, plan':<22}" + "".join(f"{layers:>10}" for layers in PLAN_DEPTHS) + "  layers")
    taken = [compiler.plan(compiler.deep_model(layers, width=8))[1] for layers in PLAN_DEPTHS]
    print(" " * 22 + "".join(f"{seconds:>10.2f}" for seconds, _ in taken) + "  s, user")
    print(" " * 22 + "".join(f"{peak / 1e6:>10.0f}" for _, peak in taken) + "  MB", flush=True)
    check(f"plan of {PLAN_DEPTHS[-1]} layers", taken[-1][0], PLAN_GOAL_SECONDS, "s")
    check(f"plan of {PLAN_DEPTHS[-1]} layers", taken[-1][1] / 1e6, PLAN_GOAL_BYTES / 1e6, "MB")
    seconds, peak = compiler.phases(compiler.deep_model(DIFFERENTIATED_DEPTH, width=8), "differentiate")
    print(f"differentiation of {DIFFERENTIATED_DEPTH} layers: {seconds:.2f} s, user, {peak / 1e6:.0f} MB", flush=True)
    check(f"differentiation of {DIFFERENTIATED_DEPTH} layers", peak / 1e6, DIFFERENTIATED_GOAL_BYTES / 1e6, "MB")
    for strategy, mesh in WIDE_MESHES.items():
        model = compiler.deep_model(WIDE_DEPTH, strategy=strategy, mesh=mesh, batch=4096)
        plan, (seconds, peak) = compiler.plan(model)
        checked, _ = compiler.resources("shardc-run", plan, "--check-plan")
        print(f"{WIDE_DEPTH} layers, {strategy} on {mesh}: plan {seconds:.2f} s, user, {peak / 1e6:.0f} MB, "
              f"{os.path.getsize(plan) / 1e6:.1f} MB large; its check {checked:.2f} s", flush=True)  # fmt: skip
    return slow


def measure_phases(compiler):
    """Prints a row per phase and a column per depth."""
    columns = []
    for layers in PHASE_DEPTHS:
        model = compiler.deep_model(layers, width=8)
        until = [compiler.phases(model, phase)[0] for phase in PHASES]
        whole, peak = compiler.plan(model)[1]
        until.append(whole)
        spent = [max(after - before, 0) for before, after in zip([0] + until, until)]
        columns.append([*spent, whole, peak / 1e6])
    print(f"{'layers of 8, fsdp':<22}" + "".join(f"{layers:>10}" for layers in PHASE_DEPTHS) + "  layers")
    units = ["s, user"] * (len(PHASES) + 2) + ["MB"]
    for name, unit, *row in zip([*PHASES, "plan", "all", "most memory"], units, *columns):
        digits = 0 if unit == "MB" else 2
        print(f"{name:<22}" + "".join(f"{value:>10.{digits}f}" for value in row) + "  " + unit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--svg")
    parser.add_argument("--phases", action="store_true")
    args = parser.parse_args()
    if args.phases:
        with tempfile.TemporaryDirectory() as folder:
            measure_phases(Compiler(args.bin, folder))
        return
    series, slow = [], []
    print(f"{'layers axes mode':<22}" + "".join(f"{devices:>10}" for devices in DEVICES) + "  devices")
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(args.bin, folder)
        for mode in compiler.modes():
            for layers, goal in GOALS.items():
                for axes in AXES:
                    name = f"{layers} layers, {axes} axes {mode}".strip()
                    models = [compiler.model(layers, axes, devices) for devices in DEVICES]
                    times = [compiler.seconds(model, mode, args.repeat) for model in models]
                    print(f"{name:<22}" + "".join(f"{seconds:>10.3f}" for seconds in times) + "  s", flush=True)
                    if layers == min(GOALS):
                        sizes = [compiler.plan_bytes(model, mode) for model in models]
                        print(f"{'  plan':<22}" + "".join(f"{size:>10}" for size in sizes) + "  bytes", flush=True)
                    series.append((name, list(zip(DEVICES, times))))
                    if max(times) > goal:
                        slow.append(f"{name}: {max(times):.2f} s, goal {goal} s")
        print(f"{'layers of 16, fsdp':<22}" + "".join(f"{layers:>10}" for layers in DEPTHS) + "  layers")
        models = [compiler.deep_model(layers) for layers in DEPTHS]
        times = [compiler.seconds(model, "", args.repeat) for model in models]
        peaks = [compiler.phases(model, "memory")[1] for model in models]
        print(" " * 22 + "".join(f"{seconds:>10.2f}" for seconds in times) + "  s")
        print(" " * 22 + "".join(f"{peak / 1e6:>10.0f}" for peak in peaks) + "  MB", flush=True)
        if times[-1] > DEPTH_GOAL_SECONDS:
            slow.append(f"{DEPTHS[-1]} layers: {times[-1]:.2f} s, goal {DEPTH_GOAL_SECONDS} s")
        if peaks[-1] > DEPTH_GOAL_BYTES:
            slow.append(f"{DEPTHS[-1]} layers: {peaks[-1] / 1e6:.0f} MB, goal {DEPTH_GOAL_BYTES / 1e6:.0f} MB")
        slow += measure_depth(compiler)
        print(f"{'axes of 2, follow':<22}" + "".join(f"{count:>10}" for count in NUM_AXES) + "  axes")
        times = [compiler.seconds(compiler.many_axes_model(count), "", args.repeat) for count in NUM_AXES]
        print(" " * 22 + "".join(f"{seconds:>10.3f}" for seconds in times) + "  s", flush=True)
        if max(times) > AXES_GOAL_SECONDS:
            slow.append(f"many axes: {max(times):.2f} s, goal {AXES_GOAL_SECONDS} s")
    for line in slow:
        print("above the goal: " + line)
    if args.svg:
        with open(args.svg, "w") as file:
            file.write(svg(series))


if __name__ == "__main__":
    main()
