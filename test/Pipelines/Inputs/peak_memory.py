#!/usr/bin/env python3
"""Runs a command and checks the most memory that it took.

  peak_memory.py MEBIBYTES COMMAND [ARGUMENT...]
"""

import resource
import subprocess
import sys

limit = int(sys.argv[1])
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
if peak > limit:
    sys.exit(f"{sys.argv[2]} took {peak:.0f} MiB, expected at most {limit}")
sys.exit(code)
