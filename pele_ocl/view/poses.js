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

  const view = moleculeView(of("molecule"));

  function choose(k) {
    chosen = k;
    of("name").textContent = data.names[k];
    for (const circle of of("plot").querySelectorAll("circle")) {
      circle.classList.toggle("chosen", Number(circle.dataset.pose) === k && !circle.classList.contains("before"));
    }
    for (const row of of("table").tBodies[0].rows) {
      row.classList.toggle("chosen", Number(row.dataset.pose) === k);
    }
    view.show(data, (i, axis) => place(chosen, i, axis));
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
  window.addEventListener("resize", () => { drawPlot(); choose(chosen); });
  fillTable();
  drawPlot();
  choose(chosen);
})();
