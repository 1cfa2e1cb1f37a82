"""lose_folder.py FOLDER TMPDIR COMMAND...: a training whose output folder goes away.

Starts the command with --save-params=FOLDER/p.npz, removes the folder after the first
line about a step, and prints its output. Fails unless the command does.
"""

import os
import subprocess
import sys

folder, temporary, command = sys.argv[1], sys.argv[2], sys.argv[3:]
os.mkdir(folder)
run = subprocess.Popen(
    command + [f"--save-params={folder}/p.npz", "--log-every=100"],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    env=dict(os.environ, TMPDIR=temporary),
)
for line in run.stdout:
    if line.startswith("step "):
        break
os.rmdir(folder)
print(run.communicate(timeout=300)[0])
assert run.returncode == 1, run.returncode
