#!/usr/bin/env python3
"""Tests the parts of benchmarks/goals that go on where something fails."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmarks", "goals"))

import estimates  # noqa: E402
import workloads as w  # noqa: E402
from contest import Entrant, Failure, Server, hold  # noqa: E402

# Knows the plans that it has loaded, and ends where it runs a bad one.
SERVER = """
import sys
loaded = set()
for line in sys.stdin:
    verb, name, _ = line.split()
    if verb == "plan":
        loaded.add(name)
    if verb == "run" and name not in loaded:
        print('{"error": "not loaded"}', flush=True)
    elif verb == "run" and name == "bad":
        sys.exit(1)
    else:
        print('{"seconds": 1, "steps": 1}', flush=True)
"""


class Servers(unittest.TestCase):
    def test_one_that_ended_is_followed_by_one_with_the_same_plans(self):
        server = Server("server", [sys.executable, "-c", SERVER])
        names = ["first", "bad", "last"]
        for name in names:
            server.load(f"plan {name} file")
        result = hold({name: Entrant(server, "run", name) for name in names}, 2, 0.1)
        self.assertEqual(result.seconds("first"), 1)
        self.assertEqual(result.error("bad"), "server ended without an answer")
        self.assertEqual(result.seconds("last"), 1)
        server.stop()
        # What is stopped knows nothing any more.
        with self.assertRaisesRegex(Failure, "not loaded"):
            server.ask("run first 1")
        server.stop()


class Compiler:
    """Has a plan for each number of devices, and none of TP over four."""

    folder = "."

    def model(self, mlp, layout):
        return layout

    def run(self, program, layout, argument):
        if layout.mesh == "model=4":
            raise Failure("shardc-opt: exit code 70")
        return str(layout.devices())

    def report(self, mlp, layout, machine):
        if layout.devices() == 4:
            raise Failure("shardc-compile: exit code 70")
        return {"time": {"overlapped_microseconds": 1e6 * layout.devices()}}


class Bench:
    models = "1024-4096"
    compiler = Compiler()

    def __init__(self):
        self.entered = []

    def enter(self, name, mlp, layout):
        self.entered.append(layout)

    def hold(self, most):
        layouts = {layout.name: layout for layout in self.entered}

        class Result:
            def error(self, name):
                return "out of memory" if layouts[name].devices() == 8 else None

            def seconds(self, name):
                return 2 * layouts[name].devices()

            def halves(self, name):
                return self.seconds(name), -self.seconds(name)

        return Result()


class Machine:
    file = "machine.json"

    def __init__(self, bench):
        pass

    def change(self):
        return ""


class Estimates(unittest.TestCase):
    def test_layouts_that_fail_are_reported_beside_the_others(self):
        machine, estimates.MeasuredMachine = estimates.MeasuredMachine, Machine
        try:
            lines = list(estimates.estimates(Bench()))
        finally:
            estimates.MeasuredMachine = machine
        failed = {line.error for line in lines if line.cells()[-2] == "FAILED"}
        self.assertEqual(failed, {"shardc-opt: exit code 70", "shardc-compile: exit code 70", "out of memory"})
        ratios = [line.ratio for line in lines if line.peer_name == "the estimate" and not line.error]
        self.assertEqual(ratios, [2, 2])
        repeated = [line.limit for line in lines if line.workload.endswith("rank correlation")]
        self.assertRegex(repeated[0], "the rounds with the other: -1.00")
        self.assertEqual(lines[-2].workload, "estimates, median factor")
        self.assertEqual(lines[-2].ratio, 2)

    def test_ranks(self):
        self.assertEqual(estimates.ranks([5, 3, 5]), [1.5, 0, 1.5])
        self.assertAlmostEqual(estimates.spearman([1, 2, 3], [2, 4, 9]), 1)
        self.assertEqual(estimates.kendall([1, 1.01, 2], [2, 1, 3]), 1)
        self.assertIsNone(estimates.kendall([1, 1.01], [2, 1]))

    def test_layouts_have_their_devices(self):
        for layout in estimates.layouts():
            self.assertIn(layout.devices(), (1, 2, 4, 8))
            self.assertIsInstance(layout, w.Layout)


if __name__ == "__main__":
    unittest.main()
