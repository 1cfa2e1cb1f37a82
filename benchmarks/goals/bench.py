"""Shared by the sections: shardc and JAX as servers, the next contest."""

import os

import workloads as w
from contest import Entrant, Failure, Server, hold
from micro import measure_limits
from table import Line

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Bench:
    """State that all sections share."""

    def __init__(self, arguments, folder):
        self.compiler = w.Compiler(arguments.bin, folder)
        self.best, self.quick = arguments.best, arguments.quick
        # Of the best some are short enough that nothing interrupts them.
        self.rounds, self.seconds = (2, 0.02) if self.quick else (25, 0.02) if self.best else (arguments.rounds, 0.15)
        self.shardc = Server("shardc", [self.compiler.tool("shardc-bench-steps")])
        self.jax = {}
        if arguments.jax:
            program = os.path.join(SOURCE, "benchmarks", "goals", "jax_peer.py")
            for devices in (1, 8):
                environment = {"JAX_PLATFORMS": "cpu",
                               "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}  # fmt: skip
                self.jax[devices] = Server(f"JAX on {devices}", [arguments.jax, program], environment)
        self.limits = measure_limits(self.compiler.tool("shardc-bench-micro"))
        self.entrants = {}

    def enter(self, key, mlp, layout):
        """shardc's steps of a model, as entrant `key` of the next contest."""
        name = f"plan{self.compiler.count}"
        self.shardc.ask(f"plan {name} {self.compiler.plan(mlp, layout)}")
        self.entrants[key] = Entrant(self.shardc, "run", name)

    def enter_jax(self, key, mlp, layout, scan=0):
        """JAX's, as `key` and, if `scan`, "`key` scan"; nothing without JAX."""
        server = self.jax.get(8 if layout.devices() > 1 else 1)
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
        self.shardc.ask(f"gemms {key} {mlp.batch} {','.join(map(str, mlp.layers))}")
        self.entrants[key] = Entrant(self.shardc, "run", key)

    def hold(self):
        result = hold(self.entrants, self.rounds, self.seconds, self.best)
        self.entrants = {}
        # A loaded program takes memory and, waiting, time.
        for server in [self.shardc, *self.jax.values()]:
            server.stop()
        return result

    def of_peak(self, mlp, seconds):
        if not seconds:
            return ""
        return f"{100 * mlp.flops() / seconds / self.limits.flops:.0f} % of peak FLOP/s"

    def line(self, result, workload, mlp, ours, peer_name, peer, goal, at_least):
        """`ours` against `peer`, both entrants of a contest."""
        above, below = (peer, ours) if at_least else (ours, peer)
        note = result.error(ours) or result.error(peer) or ("" if result.seconds(peer) else "JAX is not installed")
        return Line(workload, peer_name, result.seconds(ours), result.seconds(peer), "s", result.ratio(above, below),
                    goal, at_least, self.of_peak(mlp, result.seconds(ours)), note)  # fmt: skip
