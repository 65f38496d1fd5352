// A molecule on a canvas: drag rotates it, the wheel zooms. Pages of several kinds show one with this.

// Give the view of a canvas. show(model, place) : what poses.py collects of atoms, and the position of an atom by its
// number and axis, A; draw() : again, after the canvas has another size
function moleculeView(canvas) {
  "use strict";
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const elementColours = { C: null, N: "#3050f8", O: "#e02020", S: "#c9a800", P: "#ff8000", H: "#b8b8b8" };
  let model = null, place = null, turn = null, zoom = 1, held = null;

  function rotated(by, axis) {
    const c = Math.cos(by), s = Math.sin(by);
    const m = axis === "x" ? [[1, 0, 0], [0, c, -s], [0, s, c]] : [[c, 0, s], [0, 1, 0], [-s, 0, c]];
    turn = m.map((row) => [0, 1, 2].map((j) => row[0] * turn[0][j] + row[1] * turn[1][j] + row[2] * turn[2][j]));
  }

  function draw() {
    if (!model) return;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const middle = [0, 0, 0];
    for (const i of model.ligand) for (let a = 0; a < 3; a++) middle[a] += place(i, a) / model.ligand.length;
    let size = 4;
    for (const i of model.ligand) size = Math.max(size, Math.hypot(...[0, 1, 2].map((a) => place(i, a) - middle[a])));
    // As much as shows the nearest part of the trace, too: a ligand may be far from all residues.
    let apart = Infinity;
    for (const [i] of model.trace) apart = Math.min(apart, Math.hypot(...[0, 1, 2].map((a) => place(i, a) - middle[a])));
    const reach = Math.max(size + 6, apart < Infinity && apart > size + 8 ? apart + 12 : 0);
    const scale = (zoom * Math.min(width, height)) / (2 * reach);
    const points = [];
    for (let i = 0; i < model.elements.length; i++) {
      const p = [0, 1, 2].map((a) => place(i, a) - middle[a]);
      const [px, py, pz] = turn.map((row) => row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);
      points.push([width / 2 + scale * px, height / 2 - scale * py, pz]);
    }
    const isLigand = new Set(model.ligand);
    const sticks = model.bonds.map(([i, j]) => ({ i, j, z: (points[i][2] + points[j][2]) / 2 })).sort((a, b) => a.z - b.z);
    const near = reach - 1;
    pen.strokeStyle = colour("--line");
    pen.lineWidth = 4;
    pen.lineCap = "round";
    for (const [i, j] of model.trace) {
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
        pen.strokeStyle = elementColours[model.elements[atom]] || carbon;
        pen.beginPath();
        pen.moveTo(end[0], end[1]);
        pen.lineTo(half[0], half[1]);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--ink");
    pen.font = "11px system-ui, sans-serif";
    pen.strokeStyle = colour("--paper");
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    // Those in front first; what would lie over another, or beyond the canvas, is left out.
    const written = [];
    const byDepth = model.labels.filter(([i]) => Math.abs(points[i][2]) < 0.6 * near).sort(([i], [j]) => points[j][2] - points[i][2]);
    for (const [i, text] of byDepth) {
      const left = points[i][0] + 5, low = points[i][1] - 4, right = left + pen.measureText(text).width, top = low - 11;
      if (left < 0 || right > width || top < 0 || low > height) continue;
      if (written.some((other) => left < other.right && right > other.left && top < other.low && low > other.top)) continue;
      written.push({ left, right, low, top });
      pen.strokeText(text, left, low);
      pen.fillText(text, left, low);
    }
  }

  function show(other, places) {
    if (other !== model) turn = other.turn;  // the ligand from its broad side
    model = other;
    place = places;
    draw();
  }

  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!held || !model) return;
    rotated((event.clientX - held[0]) / 120, "y");
    rotated((event.clientY - held[1]) / 120, "x");
    held = [event.clientX, event.clientY];
    draw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom = Math.min(8, Math.max(0.3, zoom * Math.exp(-event.deltaY / 500)));
    draw();
  }, { passive: false });
  return { show, draw };
}
