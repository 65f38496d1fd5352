"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const keys = Object.keys(data.columns), n = data.names.length;
const shown = keys.filter(key => !/^(term|input) /.test(key));
const SVG = "http://www.w3.org/2000/svg";
let unfolded = !matchMedia("(max-width: 600px)").matches;  // by which a phone shows the table first
let chosen = data.order[0], sorted = { key: "rank", down: false };
const points = new Map(), lines = new Map();

function make(tag, text, name) {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (name) found.className = name;
  return found;
}
function draw(tag, attributes, text) {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  return found;
}
function written(value) {
  if (value === null || value === undefined) return "";
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}
function values(key) { return data.columns[key].values; }
function picture(k) {
  if (!data.drawings[k]) return null;
  const image = make("img");
  image.loading = "lazy";
  image.alt = `drawing of ${data.titles[k]}`;
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(data.drawings[k]);
  return image;
}

// The plot

function ticks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(of => of * power).find(of => of >= rough), found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return [found, Math.max(0, -Math.floor(Math.log10(step)))];
}
function range(of) {
  const known = of.filter(value => value !== null);
  if (!known.length) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), margin = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - margin, high + margin];
}
function plot() {
  const root = document.getElementById("plot"), width = root.clientWidth, height = root.clientHeight;
  const across = document.getElementById("x").value, up = document.getElementById("y").value;
  const xs = values(across), ys = values(up), [x0, x1] = range(xs), [y0, y1] = range(ys);
  const left = 58, bottom = 44, top = 12, right = 14;
  const px = v => left + (v - x0) / (x1 - x0) * (width - left - right);
  const py = v => height - bottom - (v - y0) / (y1 - y0) * (height - bottom - top);
  root.replaceChildren();
  points.clear();
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const [tx, dx] = ticks(x0, x1), [ty, dy] = ticks(y0, y1);
  for (const v of tx) {
    root.append(draw("line", { class: "axis", x1: px(v), x2: px(v), y1: top, y2: height - bottom }));
    root.append(draw("text", { x: px(v), y: height - bottom + 16, "text-anchor": "middle" }, v.toFixed(dx)));
  }
  for (const v of ty) {
    root.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: py(v), y2: py(v) }));
    root.append(draw("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end" }, v.toFixed(dy)));
  }
  root.append(draw("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, data.columns[across].label));
  const middle = (top + height - bottom) / 2;
  root.append(draw("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, data.columns[up].label));
  for (let k = 0; k < n; k++) {
    if (xs[k] === null || ys[k] === null) continue;
    const point = draw("circle", { cx: px(xs[k]), cy: py(ys[k]), r: 5, tabindex: 0, role: "button", "aria-label": data.titles[k] });
    point.append(draw("title", {}, `${data.titles[k]}: ${written(xs[k])}, ${written(ys[k])}`));
    point.addEventListener("click", () => choose(k, true));
    point.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(k, true); } });
    points.set(k, point);
    root.append(point);
  }
  mark();
}

// The chosen molecule

function mark() {
  for (const [k, point] of points) point.classList.toggle("chosen", k === chosen);
  for (const [k, line] of lines) line.classList.toggle("chosen", k === chosen);
  if (points.has(chosen)) points.get(chosen).parentNode.append(points.get(chosen));
}
const canvas = make("canvas"), view = moleculeView(canvas);
function showScene(k) {
  const scene = data.scenes[k];
  if (!scene) return;
  if (typeof scene.positions === "string") {  // 16-bit numbers of 0.01 A
    const packed = Uint8Array.from(atob(scene.positions), c => c.charCodeAt(0));
    scene.positions = new Int16Array(packed.buffer);
  }
  view.show(scene, (i, axis) => scene.positions[3 * i + axis] / 100);
}
function choose(k, scrolls) {
  chosen = k;
  const card = document.getElementById("card");
  card.replaceChildren(make("h2", data.titles[k]));
  if (data.titles[k] !== data.names[k]) card.append(make("div", data.names[k], "facts"));
  if (data.scenes[k]) card.append(canvas);
  showScene(k);
  const image = picture(k);
  if (image) card.append(image);
  if (data.errors[k]) card.append(make("p", data.errors[k], "error"));
  const list = make("dl");
  for (const key of keys) {
    const value = values(key)[k];
    if (value !== null) list.append(make("dt", data.columns[key].label), make("dd", written(value)));
  }
  const fold = make("details");
  fold.open = unfolded;
  fold.append(make("summary", "properties"), list);
  fold.addEventListener("toggle", () => { unfolded = fold.open; });
  card.append(fold);
  mark();
  if (scrolls && lines.has(k)) {
    const rows = document.querySelector(".rows"), line = lines.get(k);
    rows.scrollTop = line.offsetTop - rows.clientHeight / 2;
  }
}

// The table

function ordered() {
  const { key, down } = sorted, found = [...data.order];
  if (key === "rank" && !down) return found;
  const of = key === "name" ? data.titles : values(key);
  const last = value => value === null;
  return found.sort((a, b) => {
    const x = of[a], y = of[b];
    if (last(x) || last(y)) return last(x) - last(y);
    const sign = x < y ? -1 : x > y ? 1 : 0;
    return down ? -sign : sign;
  });
}
function table() {
  const word = document.getElementById("find").value.trim().toLowerCase();
  const heads = make("tr"), has = data.drawings.some(Boolean), failed = data.errors.some(Boolean);
  if (has) heads.append(make("th"));
  for (const key of ["name", ...shown]) {
    const head = make("th", undefined, key === "name" ? "text" : ""), button = make("button");
    const arrow = sorted.key === key ? (sorted.down ? " \u25be" : " \u25b4") : "";
    button.textContent = (key === "name" ? "name" : data.columns[key].label) + arrow;
    button.addEventListener("click", () => { sorted = { key, down: sorted.key === key && !sorted.down }; table(); });
    head.setAttribute("aria-sort", sorted.key !== key ? "none" : sorted.down ? "descending" : "ascending");
    head.append(button);
    heads.append(head);
  }
  if (failed) heads.append(make("th", "why not", "text"));
  document.getElementById("heads").replaceChildren(heads);
  const body = document.getElementById("body"), rows = [];
  lines.clear();
  for (const k of ordered()) {
    if (word && !`${data.titles[k]} ${data.names[k]}`.toLowerCase().includes(word)) continue;
    const line = make("tr");
    if (has) {
      const cell = make("td"), image = picture(k);
      if (image) cell.append(image);
      line.append(cell);
    }
    line.append(make("td", data.titles[k], "text"));
    for (const key of shown) line.append(make("td", written(values(key)[k])));
    if (failed) line.append(make("td", data.errors[k], "text error"));
    line.addEventListener("click", () => choose(k, false));
    lines.set(k, line);
    rows.push(line);
  }
  body.replaceChildren(...rows);
  mark();
}

for (const [id, key] of [["x", data.axes[0]], ["y", data.axes[1]]]) {
  const select = document.getElementById(id);
  for (const name of keys) {
    const option = make("option", data.columns[name].label);
    option.value = name;
    select.append(option);
  }
  select.value = key;
  select.addEventListener("change", plot);
}
document.getElementById("find").addEventListener("input", table);
if (!document.getElementById("lines").textContent) document.getElementById("lines").remove();
addEventListener("resize", () => { plot(); view.draw(); });
table();
plot();
choose(chosen, false);
