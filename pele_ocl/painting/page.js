// The plots of a page: the molecule with its surface, and slices through the map. The data are those of page.py.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const kinds = { f4: Float32Array, u4: Uint32Array, u2: Uint16Array, i2: Int16Array };

  // Numbers of packing.py; first and step scale those of 16 bits.
  function numbers(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    const values = new kinds[packed.type](bytes.buffer);
    return packed.step === undefined ? values : Float32Array.from(values, (value) => packed.first + packed.step * value);
  }

  const { end, unit, label } = data.colouring;
  const colours = data.colouring.colours.map((colour, k, all) => [k / (all.length - 1), colour]);
  const scale = { cmin: -end, cmax: end, colorscale: colours };
  const written = (value) => `${value.toFixed(Math.max(0, 2 - Math.floor(Math.log10(end))))} ${unit}`;
  const config = { displaylogo: false, modeBarButtonsToRemove: ["resetCameraLastSave3d"] };
  const margin = { l: 0, r: 0, t: 8, b: 0 };

  const [x, y, z] = data.surface.positions.map(numbers);
  const vertices = { x, y, z };
  const faces = numbers(data.surface.faces);
  const values = numbers(data.colouring.values);
  const nearest = numbers(data.surface.nearest);
  const hover = Array.from(nearest, (atom, k) =>
    data.surface.names[atom] + (isNaN(values[k]) ? "<br>no value" : `<br>${written(values[k])}`));

  // Triangles of which all three corners have a value, or the others.
  function triangles(withValue) {
    const corners = [[], [], []];
    for (let face = 0; face < faces.length; face += 3) {
      const known = [0, 1, 2].every((k) => !isNaN(values[faces[face + k]]));
      if (known === withValue) corners.forEach((list, k) => list.push(faces[face + k]));
    }
    return { i: corners[0], j: corners[1], k: corners[2] };
  }

  const shape = {
    type: "mesh3d", ...vertices, text: hover, hoverinfo: "text", flatshading: false,
    lighting: { ambient: 0.62, diffuse: 0.55, specular: 0.12, roughness: 0.6, fresnel: 0.05, vertexnormalsepsilon: 0 },
    lightposition: { x: -5e4, y: 1e5, z: -1e3 },  // of the screen, whatever the molecule's place: left, up, to the viewer
  };
  const isNarrow = window.innerWidth < 640, barWidth = 130;
  const bottom = isNarrow ? 0.2 : 0;  // a phone's bar of colours is below the molecule, on this share of the height
  // Below a molecule the title has longer lines.
  const joined = label.reduce((lines, part) => {
    const line = lines.pop();
    return `${line} ${part}`.length < 48 ? [...lines, `${line} ${part}`.trim()] : [...lines, line, part];
  }, [""]);
  const title = isNarrow ? joined : label;
  const bar = { title: { text: title.join("<br>"), side: "top" }, thickness: 16,
    ...(isNarrow ? { orientation: "h", len: 0.9, y: 0, yanchor: "bottom" } : { len: 0.8, x: 1 }),
    tickvals: [-1, -0.5, 0, 0.5, 1].map((share) => share * end) };
  const traces = [{ ...shape, ...triangles(true), intensity: values, ...scale, colorbar: bar, name: "surface" }];
  const grey = triangles(false);
  if (grey.i.length) traces.push({ ...shape, ...grey, color: "#a6a6a6", name: "surface without a value" });
  const nSurfaces = traces.length;

  const atomTraces = [];
  if (data.atoms) {
    const [ax, ay, az] = data.atoms.positions.map(numbers);
    const bonds = numbers(data.atoms.bonds);
    const path = [[], [], []];
    for (let b = 0; b < bonds.length; b += 2) {
      [ax, ay, az].forEach((axis, k) => path[k].push(axis[bonds[b]], axis[bonds[b + 1]], null));
    }
    const [bx, by, bz] = path;
    atomTraces.push(traces.length, traces.length + 1);
    traces.push({ type: "scatter3d", mode: "lines", x: bx, y: by, z: bz, line: { color: "#888", width: 4 }, hoverinfo: "skip", visible: false });
    traces.push({
      type: "scatter3d", mode: "markers", x: ax, y: ay, z: az, text: data.atoms.names, hoverinfo: "text", visible: false,
      marker: { size: data.atoms.sizes, color: data.atoms.colours, line: { width: 0 } },
    });
  } else {
    element("atoms-control").hidden = true;
  }
  const planeTrace = traces.length;
  if (data.map) {
    traces.push({ type: "surface", x: [[0]], y: [[0]], z: [[0]], showscale: false, ...scale, visible: false, hoverinfo: "skip",
      lighting: { ambient: 1, diffuse: 0, specular: 0, fresnel: 0 } });
  } else {
    element("slices").hidden = element("plane-control").hidden = true;
  }

  // Axes that end close around the surface, whatever else is shown.
  const size = data.box.last.map((value, k) => value - data.box.first[k]);
  const hidden = (k) => ({ visible: false, showspikes: false, range: [data.box.first[k], data.box.last[k]] });
  // The view has a constant height, so a narrow one needs a smaller molecule.
  function aspectRatio() {
    const box = element("molecule"), width = box.clientWidth - (isNarrow ? 0 : barWidth);
    const zoom = 1.6 * Math.min(1, width / (box.clientHeight * (1 - bottom)));
    const [ax, ay, az] = size.map((length) => zoom * length / Math.max(...size));
    return { x: ax, y: ay, z: az };
  }

  // Colours of the page around the pictures, which are those of the reader's system.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => ({ paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    "font.color": dark.matches ? "#e6e6ea" : "#444" });
  const themed = (layout) => {
    const { paper_bgcolor, plot_bgcolor } = theme();
    return { ...layout, paper_bgcolor, plot_bgcolor, font: { color: theme()["font.color"] },
      modebar: { bgcolor: "rgba(0,0,0,0)" } };
  };
  dark.addEventListener("change", () => {
    Plotly.relayout("molecule", theme());
    if (data.map) Plotly.relayout("slice", theme());
  });

  const layout = themed({
    margin, showlegend: false, hoverlabel: { align: "left" },
    scene: {
      domain: { x: [0, 1], y: [bottom, 1] },
      xaxis: hidden(0), yaxis: hidden(1), zaxis: hidden(2), dragmode: "orbit",
      aspectmode: "manual", aspectratio: aspectRatio(),
      camera: { projection: { type: "orthographic" }, eye: data.camera.eye, up: data.camera.up },
    },
  });
  const drawn = [Plotly.newPlot("molecule", traces, layout, config)];

  element("opacity").addEventListener("input", (event) => {
    const opacity = event.target.value / 100;
    const surfaces = Array.from({ length: nSurfaces }, (_, k) => k);
    Plotly.restyle("molecule", { opacity, visible: opacity > 0 }, surfaces);
  });
  element("atoms").addEventListener("change", (event) => {
    Plotly.restyle("molecule", { visible: event.target.checked }, atomTraces);
  });

  if (data.map) drawn.push(slices());
  Promise.all(drawn).then(() => {
    document.body.dataset.drawn = "yes";
    // Plots are as wide as their places at once, where Plotly itself would wait.
    const fit = (id, more) => {
      const box = element(id), { clientWidth: width, clientHeight: height } = box;
      if (width && (width !== box._fullLayout.width || height !== box._fullLayout.height)) {
        Plotly.relayout(id, { width, height, ...more() });
      }
    };
    const watch = new ResizeObserver(() => {
      fit("molecule", () => ({ "scene.aspectratio": aspectRatio() }));
      if (data.map) fit("slice", () => ({}));
    });
    watch.observe(element("molecule"));
  });

  // The slice plot with its controls; returns when it is drawn.
  function slices() {
    const { origin, spacing, shape: count } = data.map;
    const volume = numbers(data.map.values);
    const names = ["x", "y", "z"];
    const axisPoints = names.map((_, k) => Float32Array.from({ length: count[k] }, (_, n) => origin[k] + n * spacing[k]));
    const axisOf = { x: 0, y: 1, z: 2 };
    const stride = [1, count[0], count[0] * count[1]];

    function chosen() {
      const normal = axisOf[element("axis").value];
      const [across, up] = [0, 1, 2].filter((k) => k !== normal);
      return { normal, across, up, index: Number(element("place").value) };
    }

    function rows({ normal, across, up, index }) {
      return Array.from({ length: count[up] }, (_, v) =>
        Float32Array.from({ length: count[across] }, (_, u) => volume[index * stride[normal] + v * stride[up] + u * stride[across]]));
    }

    // Where the plane cuts the surface: two ends of each triangle's line, and a gap.
    function outline({ normal, across, up, index }) {
      const at = axisPoints[normal][index], heights = [x, y, z][normal], u = [x, y, z][across], v = [x, y, z][up];
      const line = { x: [], y: [] };
      for (let face = 0; face < faces.length; face += 3) {
        const ends = [];
        for (let k = 0; k < 3; k += 1) {
          const a = faces[face + k], b = faces[face + ((k + 1) % 3)];
          if ((heights[a] < at) !== (heights[b] < at)) {
            const share = (at - heights[a]) / (heights[b] - heights[a]);
            ends.push([u[a] + share * (u[b] - u[a]), v[a] + share * (v[b] - v[a])]);
          }
        }
        if (ends.length === 2) {
          line.x.push(ends[0][0], ends[1][0], null);
          line.y.push(ends[0][1], ends[1][1], null);
        }
      }
      return line;
    }

    function draw() {
      const slice = chosen(), { normal, across, up, index } = slice;
      const z = rows(slice), where = axisPoints[normal][index];
      element("where").textContent = `${names[normal]} = ${where.toFixed(1)} Å`;
      const grid = { x: axisPoints[across], y: axisPoints[up], z };
      const heat = { type: "heatmap", ...grid, zmin: -end, zmax: end, colorscale: colours, zsmooth: "best", showscale: false,
        hovertemplate: `${names[across]} %{x:.1f} Å, ${names[up]} %{y:.1f} Å<br>%{z:.3~g} ${unit}<extra></extra>` };
      const lines = { type: "contour", ...grid, contours: { coloring: "none", start: -0.6 * end, end: 0.6 * end, size: 0.4 * end },
        line: { color: "#555", width: 0.8 }, showscale: false, hoverinfo: "skip" };
      const cut = { type: "scatter", mode: "lines", ...outline(slice), line: { color: "#111", width: 1.6 }, hoverinfo: "skip" };
      const axis = (name) => ({ title: { text: `${name} (Å)` }, zeroline: false, showgrid: false, constrain: "domain" });
      const done = Plotly.react("slice", [heat, lines, cut], themed({
        margin: { l: 56, r: 12, t: 30, b: 48 }, showlegend: false, uirevision: normal, hovermode: "closest",
        xaxis: axis(names[across]), yaxis: { ...axis(names[up]), scaleanchor: "x" },
      }), config);
      if (element("plane").checked) showPlane(slice, z, where);
      return done;
    }

    function showPlane({ normal, across, up }, z, where) {
      const along = [];
      along[across] = z.map(() => axisPoints[across]);
      along[up] = z.map((row, v) => new Float32Array(row.length).fill(axisPoints[up][v]));
      along[normal] = z.map((row) => new Float32Array(row.length).fill(where));
      Plotly.restyle("molecule", { x: [along[0]], y: [along[1]], z: [along[2]], surfacecolor: [z], visible: true }, [planeTrace]);
    }

    function newAxis() {
      const { normal } = chosen(), place = element("place");
      place.max = count[normal] - 1;
      place.value = Math.round(((data.box.first[normal] + data.box.last[normal]) / 2 - origin[normal]) / spacing[normal]);
      return draw();
    }

    element("axis").addEventListener("change", newAxis);
    element("place").addEventListener("input", draw);
    element("plane").addEventListener("change", (event) => {
      if (event.target.checked) draw();
      else Plotly.restyle("molecule", { visible: false }, [planeTrace]);
    });
    return newAxis();
  }
})();
