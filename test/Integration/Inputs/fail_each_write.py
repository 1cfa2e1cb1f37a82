"""fail_each_write.py LIBRARY HOW DIR -- COMMAND...: faults at each write of checkpoints.

Runs the command with checkpoints of every second step in DIR/checkpoints, once for each call
that writes them (tools/fail-writes.cpp), which has the fault HOW: kill, full or io. After
each run all checkpoints that are there must pass shardc-checkpoint verify. After a kill,
--resume=if-any must end with the parameters of a run without faults; after an error the run
must have ended in good order, with these parameters, and exit code 2 iff the last
checkpoint is not there. Prints the number of calls.
"""

import os
import shutil
import subprocess
import sys

library, how, folder = sys.argv[1:4]
checkpoints = folder + "/checkpoints"
command = sys.argv[5:] + [
    f"--checkpoint-dir={checkpoints}",
    "--checkpoint-every=2",
    "--keep=1",
    f"--save-params={folder}/part.npz",
]
preload = os.pathsep.join(filter(None, [os.environ.get("LD_PRELOAD"), library]))


def run(arguments, **environment):
    return subprocess.run(
        arguments, capture_output=True, text=True, env={**os.environ, **environment}
    )


def parameters():
    return open(folder + "/part.npz", "rb").read()


def steps():
    """Of the checkpoints that are there: all are whole."""
    if not os.path.isdir(checkpoints):
        return []
    names = [name for name in os.listdir(checkpoints) if name.startswith("step-")]
    names = [name for name in names if ".tmp" not in name]
    for name in names:
        verified = run(["shardc-checkpoint", "verify", f"{checkpoints}/{name}"])
        assert verified.returncode == 0, (call, verified.stderr)
    return sorted(int(name[5:]) for name in names)


shutil.rmtree(folder, ignore_errors=True)
os.mkdir(folder)
assert run(command).returncode == 0
expected = parameters()
last = max(int(name[5:]) for name in os.listdir(checkpoints) if name.startswith("step-"))
known = 0
call = 0
while True:
    call += 1
    shutil.rmtree(checkpoints)
    os.remove(folder + "/part.npz")
    faulty = run(
        command, LD_PRELOAD=preload, FAIL_AT=str(call), FAIL_BY=how,
        ASAN_OPTIONS="verify_asan_link_order=0",
    )
    there = steps()
    if how == "kill":
        if faulty.returncode == 0:
            break
        assert faulty.returncode == -9, (call, faulty)
        # Once there is a checkpoint, there always is one.
        known = max([known, *there])
        assert there and there[-1] == known or known == 0, (call, there, known)
        resumed = run(command + ["--resume=if-any"])
        assert resumed.returncode == 0, (call, resumed.stderr)
        # A checkpoint to be removed stays if the kill was in front of that.
        assert steps()[-1] == last and parameters() == expected, call
        assert not [name for name in os.listdir(checkpoints) if ".tmp" in name], call
    else:
        if "is not written" not in faulty.stderr and "cannot" not in faulty.stderr:
            assert faulty.returncode == 0, (call, faulty)
            if call > 40:
                break
            continue
        assert faulty.returncode == (0 if last in there else 2), (call, there, faulty)
        assert parameters() == expected, call
print("calls with the fault", how + ":", call - 1)
