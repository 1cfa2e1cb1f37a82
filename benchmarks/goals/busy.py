"""Steps beside other work, with fewer CPUs than workers, and under a CPU quota.

Processes that only count run while an entrant of the contest has its turn beside
them, and are stopped otherwise: quiet and busy turns follow one another.
"""

import os
import signal
import subprocess
import sys

import workloads as w
from contest import Server
from table import Line

# By number of busy processes, at most so many times the quiet step on two cores. A
# fair share of the cores is 1.33, 2 and 3.
GOALS = {1: 1.5, 2: 2.2, 4: 3.3}
# With the workers of two CPUs on one.
GOAL_ON_ONE = 2.2
# In a control group with a quota of so many CPUs, at most so many times the step on two.
QUOTAS = {1: GOAL_ON_ONE, 1.5: 1.5}
# Of a goal against JAX, quiet, this must be left beside other work.
LEFT = 0.8

LAYOUTS = (w.ONE, w.DP8, w.FSDP8, w.TP8)
# By model the goals against JAX, quiet.
MODELS = [
    (w.NOTEBOOK_NAME, w.NOTEBOOK, {w.ONE: 3, w.DP8: 15, w.FSDP8: 15}),
    ("64-128-64-10 (digits), batch 256", w.DIGITS, {}),
    (w.IMAGES_NAME, w.IMAGES, {w.ONE: 2, w.DP8: 6, w.FSDP8: 2.5, w.TP8: 2}),
    (w.WIDE_NAME, w.WIDE, {w.ONE: 1.8}),
]


class Load:
    """Processes that count, at normal priority."""

    def __init__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(max(GOALS))]
        self.tell(self.processes, signal.SIGSTOP)

    @staticmethod
    def tell(processes, what):
        for process in processes:
            process.send_signal(what)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Quota:
    """A control group with a CPU quota, if this user may make one."""

    def __init__(self, cpus):
        self.folder = self.error = None
        period = 100000
        for root, settings in (("cpu", {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": round(cpus * period)}),
                               ("", {"cpu.max": f"{round(cpus * period)} {period}"})):  # fmt: skip
            folder = os.path.join("/sys/fs/cgroup", root, f"shardc-bench-{os.getpid()}-{cpus}")
            try:
                os.mkdir(folder)
            except OSError as error:
                self.error = str(error)
                continue
            self.folder = folder
            try:
                for name, value in settings.items():
                    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                        file.write(str(value))
                self.error = None
                return
            except OSError as error:
                self.error = str(error)
                self.end()

    def command(self, command):
        """The command in the group."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', self.folder, *command]

    def end(self):
        if self.folder:
            os.rmdir(self.folder)
        self.folder = None


class Beside:
    """An entrant that runs beside so many busy processes of a load."""

    def __init__(self, entrant, load, count):
        self.entrant, self.busy = entrant, load.processes[:count]
        self.error, self.times, self.argument = entrant.error, [], entrant.argument

    @property
    def steps(self):
        return self.entrant.steps

    @steps.setter
    def steps(self, value):
        self.entrant.steps = value

    def run(self, wanted):
        Load.tell(self.busy, signal.SIGCONT)
        try:
            return self.entrant.run(wanted)
        finally:
            Load.tell(self.busy, signal.SIGSTOP)


class Longer:
    """An entrant whose turns are so many times as long: a quota is of a tenth of a second, and what is left of one
    when a turn begins must not matter."""

    TIMES, TIMES_OF_LONG = 7, 3

    def __init__(self, entrant):
        self.entrant = entrant
        self.error, self.times, self.argument = entrant.error, [], entrant.argument
        self.steps = 1

    def run(self, wanted):
        self.entrant.steps = self.TIMES * self.steps if self.steps > 1 else self.TIMES_OF_LONG
        return self.entrant.run(wanted)


def enter_beside(bench, load, key):
    for count in GOALS:
        bench.entrants[f"{key} beside {count}"] = Beside(bench.entrants[key], load, count)


def lines_of(bench, result, name, mlp, goals, layout):
    ours = layout.name
    for count, goal in GOALS.items():
        what = f"{name}, {ours}, beside {count} busy"
        yield bench.line(result, what, mlp, f"{ours} beside {count}", "itself, quiet", ours, goal, False)
        if layout in goals:
            yield bench.line(result, what, mlp, f"{ours} beside {count}", "JAX, as busy", f"JAX {ours} beside {count}",
                             LEFT * goals[layout], True)  # fmt: skip
    for cpus, goal in QUOTAS.items():
        if not result.has(f"{ours} quota {cpus}"):
            continue
        yield bench.line(result, f"{name}, {ours}, CPU quota of {cpus}", mlp, f"{ours} quota {cpus}", "itself, no quota", ours, goal, False)
    yield bench.line(result, f"{name}, {ours}, 2 workers on one CPU", mlp, f"{ours} on one", "itself on two", ours, GOAL_ON_ONE, False)


def busy(bench):
    """Each model quiet, beside busy processes, and with two workers on one CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) != 2:
        yield Line("beside busy processes", "", None, None, "s", None, 0, False,
                   note=f"the goals are those of two CPUs, here are {len(cpus)}")  # fmt: skip
        return
    limited = {"on one": Server("shardc on one CPU", ["taskset", "-c", str(cpus[0]), *bench.steps_program, "2"])}
    quotas = {f"quota {cpus}": Quota(cpus) for cpus in QUOTAS}
    for key, quota in quotas.items():
        if quota.error:
            yield Line(f"CPU {key}", "", None, None, "s", None, 0, False, note=f"not measured: {quota.error}")
        else:
            limited[key] = Server(f"shardc with a {key}", quota.command(bench.steps_program))
    load = Load()
    try:
        for name, mlp, goals in [model for model in MODELS if bench.models in model[0]]:
            for layout in LAYOUTS:
                bench.enter(layout.name, mlp, layout)
                enter_beside(bench, load, layout.name)
                for key, server in limited.items():
                    bench.enter(f"{layout.name} {key}", mlp, layout, server)
                    if key in quotas:
                        bench.entrants[f"{layout.name} {key}"] = Longer(bench.entrants[f"{layout.name} {key}"])
                if layout in goals:
                    bench.enter_jax("JAX " + layout.name, mlp, layout)
                    if "JAX " + layout.name in bench.entrants:
                        enter_beside(bench, load, "JAX " + layout.name)
            result = bench.hold()
            for server in limited.values():
                server.stop()
            for layout in LAYOUTS:
                yield from lines_of(bench, result, name, mlp, goals, layout)
    finally:
        load.end()
        for quota in quotas.values():
            quota.end()
