"""Tests the pages of shardc-compile --report=html in a browser.

Every section renders without a message in the console and without loading
anything; the numbers are those of --json; pickers, hover and keys work; light,
dark and print differ; without a script everything is there; hostile names are text.
scripts/check-report.sh runs it.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile

from webdriver import Browser, count_colours

HOSTILE = ["</script><script>window.broken = 1</script>",
           "<img src=x onerror='window.broken = 1'>", "\" onload=\"window.broken = 1",
           "a&amp;b", "\u202eevil\u2028line", "n" * 10000]
SECTIONS = ["overview", "shardings", "memory", "communication", "time", "run"]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def compile_page(folder, name, *options, rename=lambda text: text, trains=False):
    """The path of the page of a generated model, and its --json."""
    model, page = f"{folder}/{name}.mlir", f"{folder}/{name}.html"
    run("shardc-gen", *options, "-o", model)
    with open(model, encoding="utf-8") as file:
        text = rename(file.read())
    with open(model, "w", encoding="utf-8") as file:
        file.write(text)
    measured = []
    if trains:
        measured = [f"--metrics={folder}/{name}.jsonl", f"--trace={folder}/{name}.json.gz"]
        run("shardc-run", model, "--data=synthetic:quadratic", "--steps=5", *measured)
    return page, json.loads(run("shardc-compile", model, "--report=html", "-o", page,
                                "--json", *measured))


def rename_parameters(text):
    for number, name in enumerate(HOSTILE):
        quoted = name.replace("\\", "\\\\").replace('"', "\\22")
        text = text.replace(f'shardc.parameter<"w{number}"',
                            f'shardc.parameter<"{quoted}"')
    return text


def check(condition, *what):
    if not condition:
        sys.exit(f"check_report.py: {' '.join(map(str, what))}")


def check_equal(found, expected, what):
    check(found == expected, what, "is", found, "and should be", expected)


def get_values(browser, selector):
    """The values of the data elements there, as numbers."""
    return browser.run(
        "return [...document.querySelectorAll(arguments[0])].map(it => Number(it.value))",
        selector + " data")


def check_quiet(browser, page):
    check_equal(browser.get_messages(), [], f"{page}: the console")
    check_equal(browser.run("return performance.getEntriesByType('resource').length"), 0,
                f"{page}: the number of files loaded")
    check_equal(browser.run("return window.broken === undefined"), True,
                f"{page}: no script of a name has run, which")


def check_numbers(browser, report):
    facts = get_values(browser, "#overview .facts")
    for field in ("num_devices", "batch_size", "peak_bytes_per_device",
                  "wire_bytes_per_device", "matmul_flops_per_device"):
        check(report[field] in facts, field, report[field], "is not in", facts)
    step = report["pipeline"]["step_microseconds"] if "pipeline" in report else \
        report["time"]["overlapped_microseconds"]
    check(step in facts, "time", step, "is not in", facts)
    bytes_of_tensors = get_values(browser, "#shardings table:not(figure table)")
    check_equal(bytes_of_tensors, [it["bytes"] for it in report["shardings"]],
                "bytes of tensors")
    # [number, wire bytes, time] of each row.
    rows = get_values(browser, "#communication tr.collective")
    groups = [rows[i:i + 3] for i in range(0, len(rows), 3)]
    collectives = report["collectives"]
    check_equal(sum(it[0] for it in groups), len(collectives), "number of collectives")
    check_equal(sum(it[1] for it in groups), sum(it["wire_bytes"] for it in collectives),
                "bytes of collectives")
    times = sum(it["microseconds"] for it in collectives)
    check(abs(sum(it[2] for it in groups) - times) <= 1e-9 * times, "time of collectives")


def get_memories(report):
    """The memory of the device, or of a device of each pipeline rank."""
    if "pipeline" in report:
        return [it["memory"] for it in report["pipeline"]["ranks"]]
    return [report["memory"]]


def check_memory(browser, report):
    kinds = ["parameters", "optimizer", "inputs", "activations", "gradients", "workspace"]
    memories = get_memories(report)
    peaks = get_values(browser, "#memory table:has(tr:nth-child(6):last-child)")
    for memory in memories:
        expected = [memory[kind] for kind in kinds]
        check(any(peaks[i:i + 6] == expected for i in range(len(peaks))), expected,
              "is not in", peaks)
    for index, memory in enumerate(memories):
        picture = f"#memory-{index}"
        browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})",
                    picture)
        browser.move_to(picture, 40, 0)
        tip = browser.run("return document.getElementById('tip').textContent")
        step = int(tip.split()[1].rstrip(":"))
        alive = [it for it in memory["over_time"]["buffers"] if it["first"] <= step <= it["last"]]
        total = sum(it["bytes"] for it in alive)
        check(f"({total} bytes)" in tip, total, "is not in", repr(tip))
        check(f"of {len(alive)} buffers" in tip, len(alive), "is not in", repr(tip))
        # The keys Home and right.
        browser.press(picture, "\ue011\ue014")
        tip = browser.run("return document.getElementById('tip').textContent")
        check(tip.startswith("op 1:"), "after Home and right:", repr(tip))
        totals = [sum(it["bytes"] for it in memory["over_time"]["buffers"]
                      if it["first"] <= op <= it["last"]) for op in range(memory["over_time"]["ops"])]
        check_equal(totals.index(max(totals)), memory["over_time"]["peak"], "the step of the peak")


def get_slice(report, tensor, device):
    """The text of the slice of `tensor` that `device` holds."""
    coordinates = {}
    for axis in reversed(report["mesh_axes"]):
        coordinates[axis] = device % report["mesh"][axis]
        device //= report["mesh"][axis]
    ranges = []
    for size, local, axes in zip(tensor["shape"], tensor["local_shape"],
                                 tensor["sharding"]):
        block = 0
        for axis in axes:
            block = block * report["mesh"][axis] + coordinates[axis]
        begin = min(size, block * local)
        ranges.append(f"{begin}:{min(size, begin + local)}")
    return "[" + ", ".join(ranges) + "]"


def check_pickers(browser, report):
    for index, tensor in enumerate(report["shardings"]):
        for device in (0, report["num_devices"] - 1):
            number = browser.run(
                "const [picker, other] = ['tensor', 'device'].map("
                "    it => document.getElementById(it + '-picker'));"
                "const index = [...picker.options].findIndex(it => it.text === arguments[0]);"
                "picker.value = index; other.value = arguments[1];"
                "other.dispatchEvent(new Event('change'));"
                "return index", tensor["name"][:80] +
                ("\u2026" if len(tensor["name"]) > 80 else ""), device)
            check(number >= 0, "no option for", tensor["name"])
            text = browser.run("return document.getElementById('held').textContent")
            check(get_slice(report, tensor, device) in text, tensor["name"], device,
                  get_slice(report, tensor, device), "is not in", text)
            shown = browser.run("return [...document.querySelectorAll('figure.layout')]"
                                ".filter(it => it.checkVisibility()).length")
            check_equal(shown, 1, "the number of pictures shown")
    # A click on the device of the mesh that is picked shows all again.
    browser.run("scrollTo(0, 0)")
    browser.click(f"#mesh .block:nth-last-of-type(1) rect")
    check_equal(browser.run("return document.getElementById('device-picker').value"), "",
                "the device after a click")


def check_looks(browser):
    def get_background():
        return browser.run("return getComputedStyle(document.body).backgroundColor")

    light = get_background()
    for section in SECTIONS:
        colours = count_colours(browser.screenshot("#" + section))
        check(len(colours) > 8, section, "has", len(colours), "colours")
    browser.send_to_page("Emulation.setEmulatedMedia", media="screen",
                         features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(get_background() != light, "the dark page is as the light one")
    check(len(count_colours(browser.screenshot("#memory"))) > 8, "the dark page is blank")
    browser.send_to_page("Emulation.setEmulatedMedia", media="print", features=[])
    shown = browser.run("return [document.querySelector('nav'), ...document"
                        ".querySelectorAll('figure')].map(it => it.checkVisibility())")
    check(not shown[0] and all(shown[1:]), "on paper the parts shown are", shown)
    browser.send_to_page("Emulation.setEmulatedMedia", media="", features=[])


def check_time(browser, report):
    ops = sorted(report["time"]["ops"], key=lambda it: -it["microseconds"])[:12]
    rows = get_values(browser, "#time tr.op")
    check_equal(rows, [it[field] for it in ops
                       for field in ("microseconds", "start_microseconds")],
                "times of the longest ops")
    end = max(it["start_microseconds"] + it["microseconds"] for it in report["time"]["ops"])
    length = report["time"]["overlapped_microseconds"]
    check(abs(end - length) <= 1e-9 * length, "the last op ends at", end, "of", length)
    if "pipeline" in report:
        rows = get_values(browser, "#time tr.rank")
        check_equal(rows, [it[field] for it in report["pipeline"]["ranks"]
                           for field in ("busy_microseconds", "peak_bytes_per_device")],
                    "figures of ranks")
        tasks = browser.run("return document.querySelectorAll('#pipeline rect').length")
        check_equal(tasks, sum(len(it["tasks"].split(","))
                               for it in report["pipeline"]["ranks"]), "the number of tasks")
    points = browser.run("return document.querySelectorAll('#roofline circle').length")
    check_equal(points, sum("gemm_flops" in it for it in report["time"]["ops"]),
                "the number of GEMMs")


def check_measured(browser, trace):
    """The time line of a run: its spans lie within the step, and say what they are."""
    with gzip.open(trace, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    runs = [it["dur"] for it in events if it.get("cat") == "run"]
    step, = get_values(browser, "#time p.measured-step")
    check(min(runs) <= step <= max(runs), "a step of", step, "is none of", runs)
    spans = browser.run(
        "return [...document.querySelectorAll('#measured rect')].map(it => ["
        "    it.x.baseVal.value, it.width.baseVal.value, it.dataset.tip])")
    check(len(spans) > 8, len(spans), "spans are drawn")
    check(all(110 <= x and x + width <= 961 for x, width, _ in spans), "spans beside the axis")
    check(any("forward" in tip and ".mlir:" in tip for *_, tip in spans),
          "no span is of the forward pass, with its line")
    # Other work may stretch any span, and the others are too narrow to point at then.
    browser.run("document.querySelector('#measured').scrollIntoView({block: 'center'})")
    widest, tip = browser.run(
        "const all = [...document.querySelectorAll('#measured rect')];"
        "const widest = all.reduce("
        "    (a, b) => a.width.baseVal.value >= b.width.baseVal.value ? a : b);"
        "return [[...widest.parentNode.children].indexOf(widest) + 1, widest.dataset.tip]")
    browser.move_to(f"#measured > :nth-child({widest})", 0, 0)
    check_equal(browser.run("return document.getElementById('tip').textContent"), tip,
                "the tip of a span")
    check_equal(len(browser.run("return [...document.querySelectorAll('#compared rect')]"
                                ".map(it => it.dataset.tip)")), 10, "the number of bars")


def check_run(browser, metrics):
    with open(metrics, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    check_equal(get_values(browser, "#run tr.metric"), [
        records[place][field] for field in ("loss", "samples_per_s", "communication_share")
        for place in (0, -1)], "first and last metrics")
    check_equal(browser.run("return document.querySelector('#run-loss polyline').points"
                            ".numberOfItems"), len(records), "the points of the loss")


def check_links(browser):
    browser.click("#communication tr.collective a")
    check_equal(browser.run("return document.getElementById('collective-0').open"), True,
                "the paragraph of a link, unfolded,")


def check_without_script(browser, page):
    browser.send_to_page("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page)
    colours = count_colours(browser.screenshot("#mesh"))
    check(len(colours) > 8, "without a script the mesh has", len(colours), "colours")
    count = len(browser.send_to_page("DOM.querySelectorAll", selector="figure.layout svg",
                                     nodeId=browser.send_to_page("DOM.getDocument")["root"]
                                     ["nodeId"])["nodeIds"])
    check(count > 1, "without a script there are", count, "pictures")
    browser.send_to_page("Emulation.setScriptExecutionDisabled", value=False)


def main():
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        pages = {
            "mlp": compile_page(folder, "mlp", "--layers=10,64,32,1", "--strategy=fsdp+tp",
                                "--mesh=data=2,model=3", "--optimizer=adam", trains=True),
            "pipeline": compile_page(folder, "pipeline", "--layers=16,32,32,8",
                                     "--strategy=dp+pp", "--mesh=data=2,stage=2",
                                     "--microbatches=4"),
            "hostile": compile_page(folder, "hostile",
                                    "--layers=16,16,16,16,16,16,8", "--strategy=fsdp",
                                    "--mesh=data=4", rename=rename_parameters)}
        for name, (page, report) in pages.items():
            browser.open(page)
            check_numbers(browser, report)
            check_memory(browser, report)
            check_pickers(browser, report)
            check_links(browser)
            check_time(browser, report)
            if name == "mlp":
                check_run(browser, f"{folder}/mlp.jsonl")
                check_measured(browser, f"{folder}/mlp.json.gz")
                check_looks(browser)
            if name == "hostile":
                text = browser.run("return document.querySelector('main').textContent")
                for hostile in HOSTILE:
                    check(hostile in text, repr(hostile[:60]), "is not on the page")
                check_equal(browser.run("return document.scripts.length"), 2,
                            "the number of scripts")
                check_equal(browser.run("return document.images.length"), 0,
                            "the number of images")
                check_equal(browser.run("return document.documentElement.scrollWidth <= "
                                        "innerWidth"), True, "the page fits the window, which")
            check_quiet(browser, name)
            print(f"{name}: {os.path.getsize(page)} bytes, as it should be")
        check_without_script(browser, pages["mlp"][0])


if __name__ == "__main__":
    main()
