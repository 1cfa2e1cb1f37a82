"""How lit finds and runs shardc's tests. Needs the build's lit.site.cfg.py."""

import os
import sys

import lit.formats

config.name = "shardc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = os.path.dirname(__file__)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "golden", "unit", "tools", "lit.cfg.py"]

# Tools are found on PATH: this build's first, then LLVM's (FileCheck, not, ...).
config.environment["PATH"] = os.pathsep.join(
    [config.shardc_bin, config.llvm_bin, os.environ.get("PATH", "")]
)
# Only builds without NDEBUG have LLVM_DEBUG lines and the flag --debug-only.
if config.build_type == "Debug":
    config.available_features.add("debug-build")
# Tests compile their models; those of the plan cache choose one of their own.
config.environment["SHARDC_PLAN_CACHE"] = ""
# Whether this computer has an assembler for GPUs changes no test.
config.environment["SHARDC_PTXAS"] = ""
config.substitutions += [
    ("%golden", os.path.join(config.test_source_root, "golden")),
    ("%examples", os.path.join(config.shardc_source, "examples")),
    ("%source", config.shardc_source),
    # A fake of libcuda and libcublasLt (runtime/test/fake).
    ("%fake", os.path.join(config.shardc_bin, "shardc-rt-fake.so")),
    # A library to preload, whose clock runs ahead (tools/fast-clock.cpp).
    ("%clock", os.path.join(config.shardc_bin, "fast-clock.so")),
    # Another one, with faults at writes of checkpoints (tools/fail-writes.cpp).
    ("%faults", os.path.join(config.shardc_bin, "fail-writes.so")),
    # What runs lit: not a script in front of it, which takes longer than most programs.
    ("%python", sys.executable),
]
