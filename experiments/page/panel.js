"use strict";

// The panel: closed forms of two mechanisms under three designs, redrawn as the sliders move.
// Only closed forms are ported from dpjax; each function names the one it repeats.

// ---- Numbers ----

/** exp(x^2) erfc(x), as scipy.special.erfcx. */
function erfcx(x) {
  if (x < 0) return 2 * Math.exp(x * x) - erfcx(-x);
  if (x < 2) {
    // erf by its series with terms of one sign (Abramowitz and Stegun 7.1.6)
    let term = x, sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) sum += term *= (2 * x * x) / (2 * n + 1);
    return Math.exp(x * x) - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let rest = x; // the continued fraction (7.1.14) from behind; 40 levels are enough from x = 2
  for (let n = 40; n > 0; n--) rest = x + n / 2 / rest;
  return 1 / (Math.sqrt(Math.PI) * rest);
}

/** Mills ratio of the normal law, P(Z > x) over the density at x. */
const mills = (x) => Math.sqrt(Math.PI / 2) * erfcx(x / Math.SQRT2);

/** dpjax.accounting.gaussian.log_delta (Balle and Wang 2018, Theorem 8). */
function logDelta(epsilon, mu) {
  const x = epsilon / mu - mu / 2, y = epsilon / mu + mu / 2;
  const logDensity = -0.5 * x * x - 0.5 * Math.log(2 * Math.PI);
  if (x >= -1) return logDensity + Math.log(mills(x) - mills(y));
  return Math.log1p(-Math.exp(logDensity) * (mills(-x) + mills(y)));
}

/** dpjax.accounting.gaussian.noise_multiplier of one query. */
function noiseMultiplier(epsilon, delta) {
  let low = -20, high = 10; // of log mu; delta grows with mu
  for (let i = 0; i < 46; i++) {
    const middle = (low + high) / 2;
    if (logDelta(epsilon, Math.exp(middle)) > Math.log(delta)) high = middle;
    else low = middle;
  }
  return Math.exp(-low);
}

/** The noise multiplier of one query by the classic Rényi conversion, which has a closed form. */
function classicMultiplier(epsilon, delta) {
  const l = -Math.log(delta);
  return (Math.sqrt(l + epsilon) + Math.sqrt(l)) / (Math.SQRT2 * epsilon);
}

const LAPLACE = { rmse: Math.SQRT2, mae: 1, within: Math.log(20) };
const GAUSSIAN = { rmse: 1, mae: Math.sqrt(2 / Math.PI), within: 1.959963984540054 };

/** Each design's noise scale for one of k queries, and the law of its noise at scale 1. */
const DESIGNS = {
  laplace: {
    law: LAPLACE,
    scale: (at) => (at.k * at.sensitivity) / at.epsilon,
  },
  exact: {
    law: GAUSSIAN,
    scale: (at) => noiseMultiplier(at.epsilon, at.delta) * Math.sqrt(at.k) * at.sensitivity,
  },
  classic: {
    law: GAUSSIAN,
    scale: (at) => classicMultiplier(at.epsilon, at.delta) * Math.sqrt(at.k) * at.sensitivity,
  },
};

/** The real k at which the Laplace design's RMSE overtakes that of Gaussian noise. */
const crossing = (multiplier, epsilon) => (multiplier * epsilon) ** 2 / 2;

// ---- Controls ----

const SLIDERS = ["epsilon", "delta", "sensitivity", "k"];
const slider = (name) => document.getElementById(name);

/** A slider holds the logarithm; what is shown, rounded, is what is used. */
function valueOf(name) {
  const raw = 10 ** Number(slider(name).value);
  return name === "k" ? Math.round(raw) : Number(raw.toPrecision(name === "delta" ? 2 : 3));
}

const shown = (number) => {
  if (number >= 1e5 || number < 1e-3) return number.toExponential();
  return String(number);
};
const digits = (number) => {
  if (number >= 1e5 || number < 1e-3) return number.toExponential(3);
  return number.toPrecision(4).replace(/\.$/, "");
};

function update() {
  const at = Object.fromEntries(SLIDERS.map((name) => [name, valueOf(name)]));
  for (const name of SLIDERS) {
    slider(`${name}-value`).textContent = shown(at[name]);
    slider(name).setAttribute("aria-valuetext", shown(at[name]));
  }
  const scales = {};
  for (const [name, { law, scale }] of Object.entries(DESIGNS)) {
    scales[name] = scale(at);
    slider(`${name}-scale`).textContent = digits(scales[name]);
    for (const measure of ["rmse", "mae", "within"]) {
      slider(`${name}-${measure}`).textContent = digits(scales[name] * law[measure]);
    }
  }
  const exact = crossing(noiseMultiplier(at.epsilon, at.delta), at.epsilon);
  const classic = crossing(classicMultiplier(at.epsilon, at.delta), at.epsilon);
  slider("exact-crossing").textContent = digits(exact);
  slider("classic-crossing").textContent = digits(classic);
  slider("verdict").textContent =
    `For ${at.k} ${at.k === 1 ? "query" : "queries"}, ` +
    `${at.k > exact ? "Gaussian" : "Laplace"} noise has the smaller RMSE: Laplace ` +
    `${digits(LAPLACE.rmse * scales.laplace)}, Gaussian ${digits(scales.exact)} (exact accounting).`;
  drawDensity(scales);
  drawAgainstEpsilon(at);
  drawAgainstQueries(at, exact);
}

// ---- Plots ----

const WIDTH = 420, HEIGHT = 280, LEFT = 66, RIGHT = 20, TOP = 14, BOTTOM = 46;

/** A scale from numbers to pixels, linear or logarithmic. */
function axis(from, to, start, end, logarithmic) {
  const f = logarithmic ? Math.log10 : (v) => v;
  return (v) => start + ((f(v) - f(from)) / (f(to) - f(from))) * (end - start);
}

const tag = (name, attributes, text = "") =>
  `<${name} ${Object.entries(attributes).map(([key, value]) => `${key}="${value}"`).join(" ")}>` +
  `${text}</${name}>`;

/** A curve; a design's colour and dashes are in the style sheet. */
const path = (points, design) =>
  tag("path", {
    d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""),
    class: `line ${design}`,
  });

/** Round numbers between two: powers of ten on a logarithmic axis, else about five. */
function ticks(from, to, logarithmic) {
  if (logarithmic) {
    const all = [];
    for (let e = Math.ceil(Math.log10(from) - 1e-9); e <= Math.log10(to) + 1e-9; e++) all.push(10 ** e);
    return all;
  }
  const unit = 10 ** Math.floor(Math.log10((to - from) / 4));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => (to - from) / s <= 6);
  const all = [];
  for (let v = Math.ceil(from / step) * step; v <= to + 1e-9 * step; v += step) all.push(v);
  return all;
}

const label = (v) => (v !== 0 && (Math.abs(v) >= 1e4 || Math.abs(v) < 1e-2)
  ? `10${String(Math.round(Math.log10(Math.abs(v)))).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)])}`
  : String(Number(v.toPrecision(6))));

/** Frame, ticks and names of a plot with the given curves inside. */
function plot(id, { x, y, xs, ys, xName, yName, logX, logY, inside, alt }) {
  const parts = [];
  for (const v of ticks(...xs, logX)) {
    parts.push(tag("line", { x1: x(v), x2: x(v), y1: TOP, y2: HEIGHT - BOTTOM, class: "rule" }));
    parts.push(tag("text", { x: x(v), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, label(v)));
  }
  for (const v of ys ? ticks(...ys, logY) : []) {
    parts.push(tag("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v), class: "rule" }));
    parts.push(tag("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, label(v)));
  }
  const middle = (TOP + HEIGHT - BOTTOM) / 2;
  parts.push(tag("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, xName));
  parts.push(tag("text", {
    x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})`,
  }, yName));
  const clip = `${id}-clip`;
  parts.push(tag("clipPath", { id: clip }, tag("rect", {
    x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM,
  })));
  parts.push(tag("g", { "clip-path": `url(#${clip})` }, inside.join("")));
  slider(id).innerHTML = parts.join("");
  slider(id).setAttribute("aria-label", alt);
}

function drawDensity({ laplace, exact }) {
  const reach = 3.5 * Math.max(Math.SQRT2 * laplace, exact);
  const top = 1.05 * Math.max(1 / (2 * laplace), 1 / (exact * Math.sqrt(2 * Math.PI)));
  const x = axis(-reach, reach, LEFT, WIDTH - RIGHT), y = axis(0, top, HEIGHT - BOTTOM, TOP);
  const curve = (density) =>
    Array.from({ length: 401 }, (_, i) => ((i - 200) / 200) * reach).map((v) => [x(v), y(density(v))]);
  plot("density", {
    x, y, xs: [-reach, reach], ys: null, xName: "noise in the answer", yName: "density",
    inside: [
      path(curve((v) => Math.exp(-Math.abs(v) / laplace) / (2 * laplace)), "laplace"),
      path(curve((v) => Math.exp(-0.5 * (v / exact) ** 2) / (exact * Math.sqrt(2 * Math.PI))), "exact"),
    ],
    alt: `Density of the noise: Laplace of scale ${digits(laplace)}, ` +
      `Gaussian of standard deviation ${digits(exact)}.`,
  });
}

/** RMSE of each design as one setting runs over a range, on logarithmic axes. */
function drawRmse(id, at, name, range, xName, marks, alt) {
  const grid = Array.from({ length: 81 }, (_, i) => range[0] * (range[1] / range[0]) ** (i / 80));
  const rmse = (design, v) =>
    DESIGNS[design].law.rmse * DESIGNS[design].scale({ ...at, [name]: v });
  const curves = Object.keys(DESIGNS).map((design) => grid.map((v) => rmse(design, v)));
  const all = curves.flat();
  const ys = [
    10 ** Math.floor(Math.log10(Math.min(...all))), 10 ** Math.ceil(Math.log10(Math.max(...all))),
  ];
  const x = axis(...range, LEFT, WIDTH - RIGHT, true), y = axis(...ys, HEIGHT - BOTTOM, TOP, true);
  const inside = curves.map((curve, i) => {
    const design = Object.keys(DESIGNS)[i];
    return path(curve.map((v, j) => [x(grid[j]), y(v)]), design);
  });
  for (const mark of marks) {
    if (mark >= range[0] && mark <= range[1]) {
      inside.push(tag("line", { x1: x(mark), x2: x(mark), y1: TOP, y2: HEIGHT - BOTTOM, class: "mark" }));
    }
  }
  for (const design of ["laplace", "exact"]) {
    inside.push(tag("circle", {
      cx: x(at[name]), cy: y(rmse(design, at[name])), r: 4.5, class: `line ${design}`,
    }));
  }
  plot(id, { x, y, xs: range, ys, xName, yName: "RMSE of one answer", logX: true, logY: true, inside, alt });
}

function drawAgainstEpsilon(at) {
  drawRmse("error", at, "epsilon", [0.01, 20], "ε of all queries together", [],
    `RMSE against epsilon for ${at.k} queries, falling for every design; ` +
    `at epsilon ${shown(at.epsilon)} Laplace has ${digits(Math.SQRT2 * DESIGNS.laplace.scale(at))}, ` +
    `Gaussian ${digits(DESIGNS.exact.scale(at))}.`);
}

function drawAgainstQueries(at, exact) {
  drawRmse("queries", at, "k", [1, 1000], "number of queries k", [exact],
    `RMSE against the number of queries: Laplace grows like k, Gaussian like its square root; ` +
    `they cross at k = ${digits(exact)}.`);
}

for (const name of SLIDERS) slider(name).addEventListener("input", update);
update();
