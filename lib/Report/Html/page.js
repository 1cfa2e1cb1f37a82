// What the page does beyond its markup: pickers, hover and keys. Without it
// every picture and table is there all the same.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");

  /** Shows `text` beside a point of the window. */
  function showTip(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 4)) + "px";
  }

  function hideTip() { tip.hidden = true; }

  // Titles of pictures become tips, which come at once and follow the focus.
  for (const title of document.querySelectorAll("svg title")) {
    const element = title.parentNode;
    element.dataset.tip = title.textContent;
    element.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  document.addEventListener("mousemove", (event) => {
    const element = event.target.closest("[data-tip]");
    if (element) showTip(element.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest("figure.memory svg")) hideTip();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
  });
  document.addEventListener("focusin", (event) => {
    const element = event.target.closest("[data-tip]");
    if (!element) return;
    const box = element.getBoundingClientRect();
    showTip(element.dataset.tip, box.left, box.bottom);
  });

  // A link to a folded paragraph unfolds it.
  function unfold(hash) {
    const target = document.getElementById(hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link) unfold(link.getAttribute("href"));
  });
  addEventListener("hashchange", () => unfold(location.hash));
  unfold(location.hash);

  /** A select with a label; `options` are [value, text, group]. */
  function addPicker(parent, id, label, options, onChange) {
    const box = document.createElement("label");
    box.append(label);
    const select = document.createElement("select");
    select.id = id;
    let group = null;
    for (const [value, text, groupName] of options) {
      if (groupName && (!group || group.label !== groupName)) {
        group = document.createElement("optgroup");
        group.label = groupName;
        select.append(group);
      }
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      (groupName ? group : select).append(option);
    }
    select.addEventListener("change", onChange);
    box.append(select);
    parent.append(box);
    return select;
  }

  function setUpShardings() {
    const section = document.getElementById("shardings");
    const figures = [...document.querySelectorAll("figure.layout")];
    const pickers = document.getElementById("sharding-pickers");
    const held = document.getElementById("held");
    if (figures.length === 0) return;
    const tensors = data.tensors.map((tensor, index) =>
      [index, tensor.name, tensor.group === "moved" ? "before and after a move" : "stored"]);
    const devices = [["", "all"]];
    for (let device = 0; device < data.devices; ++device)
      devices.push([device, "device " + device]);
    const tensorPicker = addPicker(pickers, "tensor-picker", "tensor", tensors, update);
    const devicePicker = addPicker(pickers, "device-picker", "device", devices, update);
    for (const heading of section.querySelectorAll("h3")) heading.hidden = true;

    function update() {
      const device = devicePicker.value;
      const tensor = data.tensors[tensorPicker.value];
      figures.forEach((figure, index) => { figure.hidden = index !== tensor.figure; });
      section.classList.toggle("picked", device !== "");
      const slices = [];
      for (const block of section.querySelectorAll(".block")) {
        const holds = block.dataset.devices.split(" ").includes(device);
        block.classList.toggle("held", holds);
        if (holds && figures[tensor.figure].contains(block))
          slices.push(block.dataset.tip.replace(/ on devices?.*$/, ""));
      }
      held.textContent = device === "" ? "" : "device " + device + " holds " +
        tensor.name + " " + (slices.join(", then ") || "(a slice that is not drawn)");
    }

    // A click on a device picks it, a second one picks all again.
    section.addEventListener("click", (event) => {
      const block = event.target.closest(".block");
      if (!block) return;
      const first = block.dataset.devices.split(" ")[0];
      devicePicker.value = devicePicker.value === first ? "" : first;
      update();
    });
    update();
  }

  function formatBytes(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
    return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
  }

  /** What is alive at `step` of a picture of memory. */
  function describeStep(memory, step) {
    const alive = memory.buffers.filter((it) => it[3] <= step && step <= it[4]);
    const sums = memory.kinds.map(() => 0);
    for (const buffer of alive) sums[buffer[1]] += buffer[2];
    const total = sums.reduce((sum, it) => sum + it, 0);
    const lines = ["op " + step + ": " + formatBytes(total) + " (" + total + " bytes)"];
    memory.kinds.forEach((kind, index) => {
      if (sums[index]) lines.push("  " + kind + " " + formatBytes(sums[index]));
    });
    lines.push("largest of " + alive.length + " buffers:");
    alive.sort((a, b) => b[2] - a[2]);
    for (const [name, kind, bytes, , , source] of alive.slice(0, 8)) {
      const place = memory.texts[source];
      lines.push("  " + memory.texts[name] + " " + formatBytes(bytes) + ", " +
        memory.kinds[kind] + (place ? ", " + place.replace(/^.*\//, "") : ""));
    }
    return lines.join("\n");
  }

  function setUpMemory(memory, index) {
    const svg = document.getElementById("memory-" + index);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("visibility", "hidden");
    cursor.setAttribute("y1", memory.top);
    cursor.setAttribute("y2", memory.top + memory.height);
    svg.append(cursor);
    svg.setAttribute("tabindex", "0");
    for (const element of svg.querySelectorAll("[data-tip]")) delete element.dataset.tip;
    let step = 0;

    function show(x, y) {
      const place = memory.left + memory.width * (step + 0.5) / memory.steps;
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
      showTip(describeStep(memory, step), x, y);
    }

    function hide() {
      cursor.setAttribute("visibility", "hidden");
      hideTip();
    }

    function moveTo(next) {
      step = Math.max(0, Math.min(memory.steps - 1, next));
    }

    svg.addEventListener("mousemove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      moveTo(Math.floor((x - memory.left) / memory.width * memory.steps));
      show(event.clientX, event.clientY);
    });
    svg.addEventListener("mouseleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const moves = {ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: memory.steps - 1};
      if (!(event.key in moves)) return;
      event.preventDefault();
      moveTo(moves[event.key]);
      const box = svg.getBoundingClientRect();
      const scale = box.width / svg.viewBox.baseVal.width;
      show(box.left + scale * (memory.left + memory.width * (step + 0.5) / memory.steps),
        box.top + 40);
    });
  }

  setUpShardings();
  data.memory.forEach(setUpMemory);
})();
