"""Shared by the sections: shardc and JAX as servers, the next contest."""

import os
import socket

import workloads as w
from contest import Entrant, Failure, Server, Servers, hold
from micro import measure_limits
from table import Line

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


# In containers the user is root.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PROCESSES = 2  # of the section of that name


def library_environment(cpu_target):
    """Of libraries with kernels of their own."""
    return {"ONEDNN_MAX_CPU_ISA": "AVX2"} if cpu_target == "x86-64-v3" else {}


def jax_environment(devices, cpu_target=None):
    flags = f"--xla_force_host_platform_device_count={devices}"
    if cpu_target == "x86-64-v3":
        flags += " --xla_cpu_max_isa=AVX2"
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, **library_environment(cpu_target)}


def jax_processes(python, program, devices, cpu_target):
    """JAX in two processes with so many devices each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    return Servers([Server(f"JAX in process {rank}", [python, program, address, str(PROCESSES), str(rank)], jax_environment(devices, cpu_target))
                    for rank in range(PROCESSES)])  # fmt: skip


class Bench:
    """State that all sections share."""

    def __init__(self, arguments, folder):
        self.compiler = w.Compiler(arguments.bin, folder)
        self.best, self.quick = arguments.best, arguments.quick
        self.models = arguments.models
        # Of the best some are short enough that nothing interrupts them.
        self.peers = arguments.checkpoint_peers
        self.rounds, self.seconds = (2, 0.02) if self.quick else (25, 0.02) if self.best else (arguments.rounds, 0.15)
        self.cpu_target = arguments.cpu_target
        self.steps_program = [self.compiler.tool("shardc-bench-steps")] + ([f"--cpu-target={self.cpu_target}"] if self.cpu_target else [])
        self.shardc = Server("shardc", self.steps_program, library_environment(self.cpu_target))
        mpirun = ["mpirun", "-n", str(PROCESSES), "--oversubscribe"]
        self.shardc_processes = Server("shardc in processes", [*mpirun, *self.steps_program], MPI_ENVIRONMENT)
        self.mpirun = mpirun
        self.jax, self.jax_processes = {}, {}
        if arguments.jax:
            program = os.path.join(SOURCE, "benchmarks", "goals", "jax_peer.py")
            for devices in (1, 8):
                self.jax[devices] = Server(f"JAX on {devices}", [arguments.jax, program], jax_environment(devices, self.cpu_target))
            for devices in (2, 8):
                self.jax_processes[devices] = jax_processes(arguments.jax, program, devices // PROCESSES, self.cpu_target)
        self.limits = measure_limits(self.compiler.tool("shardc-bench-micro"))
        self.entrants = {}

    def enter(self, key, mlp, layout, server=None, arguments=(), model_flags=()):
        """shardc's steps of a model, as entrant `key` of the next contest; `arguments` for its compilation."""
        name, server = f"plan{self.compiler.count}", server or self.shardc
        entrant = self.entrants[key] = Entrant(server, "run", name)
        try:
            server.load(f"plan {name} {self.compiler.plan(mlp, layout, arguments, model_flags)}")
        except Failure as failure:
            entrant.error = str(failure)

    def enter_jax(self, key, mlp, layout, scan=0, processes=False):
        """JAX's, as `key` and, if `scan`, "`key` scan"; nothing without JAX."""
        server = (self.jax_processes.get(layout.devices()) if processes
                  else self.jax.get(8 if layout.devices() > 1 else 1))  # fmt: skip
        if not server:
            return
        name = f"model{len(self.entrants)}"
        entrant = self.entrants[key] = Entrant(server, "run", name)
        try:
            server.ask(w.jax_request(name, mlp, layout, scan or 1))
        except Failure as failure:
            entrant.error = str(failure)
            return
        if scan:
            self.entrants[key + " scan"] = Entrant(server, "scan", name)

    def enter_gemms(self, key, mlp):
        self.shardc.load(f"gemms {key} {mlp.batch} {','.join(map(str, mlp.layers))}")
        self.entrants[key] = Entrant(self.shardc, "run", key)

    def hold(self, most=None):
        """The result of a contest of at most about `most` seconds."""
        result = hold(self.entrants, self.rounds, self.seconds, self.best, most)
        self.entrants = {}
        # A loaded program takes memory and, waiting, time.
        for server in [self.shardc, self.shardc_processes, *self.jax.values(), *self.jax_processes.values()]:
            server.stop()
        return result

    def of_peak(self, flops, seconds):
        if not seconds:
            return ""
        return f"{100 * flops / seconds / self.limits.flops:.0f} % of peak FLOP/s"

    def line(self, result, workload, mlp, ours, peer_name, peer, goal, at_least, flops=0):
        """`ours` against `peer`, both entrants of a contest; `flops` of ours, if they are not those of a step."""
        above, below = (peer, ours) if at_least else (ours, peer)
        note = result.error(ours) or result.error(peer) or ("" if result.seconds(peer) else "JAX is not installed")
        return Line(workload, peer_name, result.seconds(ours), result.seconds(peer), "s", result.ratio(above, below),
                    goal, at_least, self.of_peak(flops or mlp.flops(), result.seconds(ours)), note)  # fmt: skip
