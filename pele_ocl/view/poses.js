// Poses as points that can be chosen, and the chosen one as a molecule. The data are those of poses.py.

(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const of = (id) => document.getElementById(id);
  const n = data.names.length;
  let chosen = data.chosen;

  // Positions of the atoms of a pose, A: 16-bit numbers of 0.01 A.
  const packed = Uint8Array.from(atob(data.positions), (c) => c.charCodeAt(0));
  const places = new Int16Array(packed.buffer);
  const nAtoms = data.elements.length;
  const place = (k, i, axis) => places[3 * (k * nAtoms + i) + axis] / 100;

  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const elementColours = { C: null, N: "#3050f8", O: "#e02020", S: "#c9a800", P: "#ff8000", H: "#b8b8b8" };

  function choose(k) {
    chosen = k;
    of("name").textContent = data.names[k];
    for (const circle of of("plot").querySelectorAll("circle")) {
      circle.classList.toggle("chosen", Number(circle.dataset.pose) === k && !circle.classList.contains("before"));
    }
    for (const row of of("table").tBodies[0].rows) {
      row.classList.toggle("chosen", Number(row.dataset.pose) === k);
    }
    drawMolecule();
  }

  // Round numbers between two ends, about five of them.
  function ticks(low, high) {
    const span = high - low || 1, power = 10 ** Math.floor(Math.log10(span / 5));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => span / s <= 6);
    const found = [];
    for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * span; v += step) found.push(Number(v.toPrecision(12)));
    return found;
  }

  function node(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function drawPlot() {
    const plot = of("plot"), width = plot.clientWidth, height = plot.clientHeight;
    const x = data.columns[of("x").value], y = data.columns[of("y").value];
    const good = [...Array(n).keys()].filter((k) => x.values[k] !== null && y.values[k] !== null);
    plot.replaceChildren();
    const pad = { left: 76, right: 16, top: 14, bottom: 46 };
    const ends = (of) => {
      const values = good.map((k) => of.values[k]);
      const low = Math.min(...values), high = Math.max(...values), edge = 0.05 * (high - low) || 1;
      return [low - edge, high + edge];
    };
    if (!good.length) {
      plot.append(node("text", { x: 20, y: 30 }, "No pose has both numbers."));
      return;
    }
    const [x0, x1] = ends(x), [y0, y1] = ends(y);
    const across = (v) => pad.left + ((v - x0) / (x1 - x0)) * (width - pad.left - pad.right);
    const up = (v) => height - pad.bottom - ((v - y0) / (y1 - y0)) * (height - pad.top - pad.bottom);
    for (const v of ticks(x0, x1)) {
      plot.append(node("line", { class: "axis", x1: across(v), x2: across(v), y1: pad.top, y2: height - pad.bottom }));
      plot.append(node("text", { x: across(v), y: height - pad.bottom + 16, "text-anchor": "middle" }, v.toLocaleString("en")));
    }
    for (const v of ticks(y0, y1)) {
      plot.append(node("line", { class: "axis", x1: pad.left, x2: width - pad.right, y1: up(v), y2: up(v) }));
      plot.append(node("text", { x: pad.left - 6, y: up(v) + 4, "text-anchor": "end" }, v.toLocaleString("en")));
    }
    plot.append(node("text", { x: (pad.left + width - pad.right) / 2, y: height - 10, "text-anchor": "middle" }, x.label));
    const middle = (pad.top + height - pad.bottom) / 2;
    plot.append(node("text", { transform: `translate(16 ${middle}) rotate(-90)`, "text-anchor": "middle" }, y.label));
    for (const k of good) {
      const circle = node("circle", { cx: across(x.values[k]), cy: up(y.values[k]), r: 5, tabindex: 0 });
      circle.dataset.pose = k;
      circle.append(node("title", {}, data.names[k]));
      circle.addEventListener("click", () => choose(k));
      circle.addEventListener("keydown", (event) => event.key === "Enter" && choose(k));
      plot.append(circle);
    }
  }

  // The view of the molecule: a rotation and a scale.
  let turn = data.turn, zoom = 1;  // the ligand from its broad side

  function rotated(by, axis) {
    const c = Math.cos(by), s = Math.sin(by);
    const m = axis === "x" ? [[1, 0, 0], [0, c, -s], [0, s, c]] : [[c, 0, s], [0, 1, 0], [-s, 0, c]];
    turn = m.map((row) => [0, 1, 2].map((j) => row[0] * turn[0][j] + row[1] * turn[1][j] + row[2] * turn[2][j]));
  }

  function drawMolecule() {
    const canvas = of("molecule"), ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const middle = [0, 0, 0];
    for (const i of data.ligand) for (let a = 0; a < 3; a++) middle[a] += place(chosen, i, a) / data.ligand.length;
    let size = 4;
    for (const i of data.ligand) size = Math.max(size, Math.hypot(...[0, 1, 2].map((a) => place(chosen, i, a) - middle[a])));
    // As much as shows the nearest part of the trace, too: a ligand may be far from all residues.
    let apart = Infinity;
    for (const [i] of data.trace) apart = Math.min(apart, Math.hypot(...[0, 1, 2].map((a) => place(chosen, i, a) - middle[a])));
    const reach = Math.max(size + 6, apart < Infinity && apart > size + 8 ? apart + 12 : 0);
    const scale = (zoom * Math.min(width, height)) / (2 * reach);
    const points = [];
    for (let i = 0; i < nAtoms; i++) {
      const p = [0, 1, 2].map((a) => place(chosen, i, a) - middle[a]);
      const [px, py, pz] = turn.map((row) => row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);
      points.push([width / 2 + scale * px, height / 2 - scale * py, pz]);
    }
    const isLigand = new Set(data.ligand);
    const sticks = data.bonds.map(([i, j]) => ({ i, j, z: (points[i][2] + points[j][2]) / 2 })).sort((a, b) => a.z - b.z);
    const near = reach - 1;
    pen.strokeStyle = colour("--line");
    pen.lineWidth = 4;
    pen.lineCap = "round";
    for (const [i, j] of data.trace) {
      pen.globalAlpha = Math.min(1, Math.max(0.2, 0.6 + (0.3 * points[i][2]) / (near + 10)));
      pen.beginPath();
      pen.moveTo(points[i][0], points[i][1]);
      pen.lineTo(points[j][0], points[j][1]);
      pen.stroke();
    }
    for (const { i, j, z } of sticks) {
      if (Math.abs(z) > near) continue;
      pen.globalAlpha = Math.min(1, Math.max(0.15, 0.65 + (0.45 * z) / near));
      pen.lineWidth = isLigand.has(i) ? 5 : 2;
      pen.lineCap = "round";
      const half = [(points[i][0] + points[j][0]) / 2, (points[i][1] + points[j][1]) / 2];
      for (const [end, atom] of [[points[i], i], [points[j], j]]) {
        const carbon = isLigand.has(atom) ? colour("--chosen") : colour("--faint");
        pen.strokeStyle = elementColours[data.elements[atom]] || carbon;
        pen.beginPath();
        pen.moveTo(end[0], end[1]);
        pen.lineTo(half[0], half[1]);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--ink");
    pen.font = "11px system-ui, sans-serif";
    for (const [i, text] of data.labels) {
      if (Math.abs(points[i][2]) < 0.6 * near) pen.fillText(text, points[i][0] + 5, points[i][1] - 4);
    }
  }

  function fillTable() {
    const table = of("table"), names = Object.keys(data.columns), head = table.createTHead().insertRow();
    for (const text of ["pose", ...names.map((name) => data.columns[name].label)]) {
      const cell = document.createElement("th");
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const k of data.order) {
      const row = body.insertRow();
      row.dataset.pose = k;
      row.insertCell().textContent = data.names[k];
      for (const name of names) {
        const value = data.columns[name].values[k];
        row.insertCell().textContent = value === null ? "-" : Number(value.toPrecision(5)).toLocaleString("en");
      }
      row.addEventListener("click", () => choose(k));
    }
  }

  for (const [id, start] of [["x", data.axes[0]], ["y", data.axes[1]]]) {
    for (const [name, column] of Object.entries(data.columns)) of(id).add(new Option(column.label, name));
    of(id).value = start;
    of(id).addEventListener("change", () => { drawPlot(); choose(chosen); });
  }
  const canvas = of("molecule");
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    rotated((event.clientX - held[0]) / 120, "y");
    rotated((event.clientY - held[1]) / 120, "x");
    held = [event.clientX, event.clientY];
    drawMolecule();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom = Math.min(8, Math.max(0.3, zoom * Math.exp(-event.deltaY / 500)));
    drawMolecule();
  }, { passive: false });
  window.addEventListener("resize", () => { drawPlot(); choose(chosen); });
  fillTable();
  drawPlot();
  choose(chosen);
})();
