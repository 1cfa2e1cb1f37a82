"""check_trace.py TRACE SUMMARY [PROCESSES]: succeeds if a trace of shardc-run holds together, and
agrees with the run's JSON summary.

check_trace.py --profile SUMMARY [hidden]: succeeds if the profile in it adds up; on GPUs, where
commands may be hidden behind others."""
import collections
import gzip
import json
import math
import sys

# Tracks of what ran: of virtual devices, of GPUs.
WORKERS = "worker", "stream"


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return json.loads(gzip.decompress(data) if path.endswith(".gz") else data)


def expect(holds, what):
    if not holds:
        sys.exit(f"{sys.argv[1]}: {what}")


if sys.argv[1] == "--profile":
    summary = read(sys.argv[2])
    profile = summary["profile"]
    expect(profile["steps"] >= 1 and profile["median_seconds"] > 0, "no steps")
    total = sum(profile["seconds"].values())
    expect(abs(total / profile["step_seconds"] - 1) < 1e-6, "parts do not add up to the step")
    of_commands = sum(c["seconds"] for c in profile["commands"])
    of_parts = total - profile["seconds"]["waiting"] - profile["seconds"]["rest"]
    if "hidden" in sys.argv[3:]:
        # Commands have the time that streams take beside others, too.
        of_parts += profile["hidden_communication_seconds"]
        expect(of_commands >= of_parts * (1 - 1e-6), "commands take less than the parts")
    else:
        expect(abs(of_commands / of_parts - 1) < 1e-6, "commands do not add up to the parts")
    wire_bytes = sum(c["wire_bytes_per_device"] for c in profile["commands"])
    expect(wire_bytes == summary["wire_bytes_per_step"], f"{wire_bytes} wire bytes")
    expect(all(rate > 0 for rate in profile["attained"].values()), "no rates")
    sys.exit()

trace, summary = read(sys.argv[1]), read(sys.argv[2])
processes = int(sys.argv[3]) if len(sys.argv) > 3 else 1
events = trace["traceEvents"]
names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["name"] == "thread_name"}
by_phase = collections.defaultdict(list)
for event in events:
    by_phase[event["ph"]].append(event)
expect({e["pid"] for e in events} == set(range(processes)), "other processes than expected")

# Spans of a track follow one another, in each process and over all of them within a step.
tracks = collections.defaultdict(list)
for event in by_phase["X"]:
    expect(event["dur"] >= 0, f"a negative duration: {event}")
    track = names.get((event["pid"], event["tid"]))
    expect(track, f"a track without a name: {event}")
    tracks[event["pid"], track].append(event)
for (process, track), spans in tracks.items():
    spans.sort(key=lambda e: (e["ts"], e["dur"]))
    if track.startswith(("worker", "stream", "device", "steps")):
        for before, after in zip(spans, spans[1:]):
            # A nanosecond for rounding.
            expect(before["ts"] + before["dur"] <= after["ts"] + 0.0011,
                   f"{track}: {before['name']} and {after['name']} overlap")
steps = {p: [e["name"] for e in s] for (p, t), s in tracks.items() if t == "steps"}
print("steps:", " ".join(steps[0]))
expect(all(s == steps[0] for s in steps.values()), "processes have other steps")
bounds = [[s for (p, t), s in tracks.items() if t == "steps" and p == q][0] for q in range(processes)]
for of_process in zip(*bounds):
    # All take part in the collectives of a step: it is at the same time everywhere.
    expect(max(e["ts"] for e in of_process) < min(e["ts"] + e["dur"] for e in of_process),
           "clocks of processes disagree")

# Every device and every worker did something.
devices = {t.split(" (")[0] for (_, t) in tracks if t.startswith("device")}
numbers = [int(axis.split("=")[1]) for axis in summary["mesh"].split(",")]
expect(len(devices) == math.prod(numbers), f"devices: {sorted(devices)}")
for (process, track), spans in tracks.items():
    kind = "communication" if track.endswith(": communication") else "compute"
    expect(not track.startswith(WORKERS) or any(e["cat"] == kind for e in spans),
           f"{track} has no {kind}")
print("tracks of the host:", ", ".join(sorted({t for (_, t) in tracks if not t.startswith(
    (*WORKERS, "device", "steps"))})))

# What is in the program is in the trace, with its place in the model.
work = [e for e in by_phase["X"] if names[e["pid"], e["tid"]].startswith(WORKERS) and e["cat"] != "wait"]
expect(all(e["args"]["part"] in ("forward", "backward", "update") for e in work), "no part")
expect(all(":" in e["args"]["source"] for e in work
           if not e["name"].startswith(("upload", "download"))), "no place in the model")
# A step runs at most once in a loop or task; workers that share it have the same numbers.
flops = collections.Counter()
for event in work:
    key = event["pid"], event["args"]["run"], event["args"]["step"], event["args"]["loop"]
    flops[key] = event["args"].get("flops", 0)
print(f"GFLOP of a step: {sum(flops.values()) / len(steps[0]) / 1e9:.6f}")

# Both ends of each flow and of each collective.
for begin, end, what in (("s", "f", "flows"), ("b", "e", "collectives")):
    first = {e["id"]: e for e in by_phase[begin]}
    last = {e["id"]: e for e in by_phase[end]}
    expect(first.keys() == last.keys(), f"{what} with one end")
    expect(all(first[i]["ts"] <= last[i]["ts"] for i in first), f"{what} that end before they begin")
    print(f"{what}:", "some" if first else "none")

# Counters agree with the plan.
counters = collections.defaultdict(list)
for event in by_phase["C"]:
    counters[event["pid"], event["name"]].append((event["ts"], event["args"]["value"]))
for (process, name), values in counters.items():
    if name == "wire bytes per device" and not any("pipeline" in n for (_, n) in counters):
        expect(max(v for _, v in values) == summary["wire_bytes_per_step"] * len(steps[0]),
               f"{name}: {max(values)}, not {summary['wire_bytes_per_step']} in each step")
    if name == "arena bytes with values":
        # The arena also has gaps, and room that a bucket keeps.
        most, arena = max(v for _, v in values), summary["peak_bytes_per_device"]
        expect(arena / 2 < most <= arena, f"{name}: {most} in an arena of {arena}")
