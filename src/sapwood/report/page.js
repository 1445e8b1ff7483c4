
"use strict";
// The page is complete without this: it adds numbers and zooming to curves, and order to leaves.

const SVG = "http://www.w3.org/2000/svg";

function made(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
  parent.append(element);
  return element;
}

function shown(value) {
  if (value === null) return "–";
  const digits = Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 };
  return value.toLocaleString("en", digits);
}

function nearest(rows, wanted) {
  let low = 0;
  let high = rows.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (rows[middle] < wanted) low = middle;
    else high = middle;
  }
  return wanted - rows[low] < rows[high] - wanted ? low : high;
}

const DOT = "m-0.7 0a0.7 0.7 0 1 0 1.4 0a0.7 0.7 0 1 0 -1.4 0";
let clips = 0;
const MINUTE = 1 / 1440; // of a day, in which times are counted
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function two(number) {
  return String(number).padStart(2, "0");
}

function moment(days) {
  const date = new Date(Math.round(days * 86400) * 1000);
  const day = date.getUTCFullYear() + "-" + two(date.getUTCMonth() + 1) + "-" + two(date.getUTCDate());
  return day + " " + two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
}

function followPointer(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector("svg");
  const plot = figure.querySelector(".plot");
  const [left, top, right, bottom] = data.frame;
  const guide = made("line", { y1: top, y2: bottom, style: "stroke: var(--muted); stroke-width: 0.7" }, svg);
  const dots = data.lines.map((line) =>
    made("circle", { r: 2.6, style: "fill: " + line.colour + "; stroke: var(--paper)" }, svg));
  const tip = document.createElement("div");
  tip.className = "tip";
  plot.append(tip);

  function hide() {
    for (const part of [guide, ...dots]) part.style.display = "none";
    tip.hidden = true;
  }

  function show(event) {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const pointed = (event.clientX - box.left) * scale;
    const along = (pointed - left) / (right - left);
    if (!(along >= -0.02 && along <= 1.02)) return hide();
    const place = nearest(data.rows, data.x[0] + along * (data.x[1] - data.x[0]));
    const x = left + (data.rows[place] - data.x[0]) / (data.x[1] - data.x[0]) * (right - left);
    guide.setAttribute("x1", x);
    guide.setAttribute("x2", x);
    guide.style.display = "";
    tip.replaceChildren(data.time ? moment(data.rows[place]) : "row " + shown(data.rows[place]));
    data.lines.forEach((line, order) => {
      const value = line.values[place];
      const y = bottom - (value - data.y[0]) / (data.y[1] - data.y[0]) * (bottom - top);
      const visible = value !== null && y >= top - 1 && y <= bottom + 1;
      dots[order].style.display = visible ? "" : "none";
      if (visible) {
        dots[order].setAttribute("cx", x);
        dots[order].setAttribute("cy", y);
      }
      const colour = document.createElement("i");
      colour.style.background = line.colour;
      const entry = document.createElement("div");
      entry.append(colour, line.name + ": " + shown(value));
      tip.append(entry);
    });
    tip.hidden = false;
    const room = plot.clientWidth - tip.offsetWidth;
    const next = x / scale + 10;
    tip.style.left = Math.max(0, next > room ? x / scale - 10 - tip.offsetWidth : next) + "px";
    tip.style.top = top / scale + "px";
  }

  hide();
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}

function niceSteps(from, to, most) {
  const rough = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, power * [1, 2, 5, 10].find((times) => power * times >= rough));
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push([at, short(at)]);
  return ticks;
}

function short(value) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return Number((value / size).toPrecision(6)) + letter;
  }
  return String(Number(value.toPrecision(6)));
}

function dateSteps(from, to, most) {
  const span = to - from;
  const ticks = [];
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600].find((step) => span / (30.4 * step) <= most);
  if (span > 20 * most && months) {
    const first = new Date(from * 864e5);
    let month = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
    for (; ; month += months) {
      const at = Date.UTC(Math.floor(month / 12), month % 12) / 864e5;
      if (at > to) return ticks;
      const name = months >= 12 ? "" : MONTHS[month % 12] + " ";
      if (at >= from) ticks.push([at, name + Math.floor(month / 12)]);
    }
  }
  const steps = [1, 5, 15, 60, 180, 360, 720, 1440, 2880, 10080, 20160].map((minutes) => minutes * MINUTE);
  const step = steps.find((each) => span / each <= most) || steps[steps.length - 1];
  for (let at = Math.ceil(from / step - 1e-6) * step; at <= to; at += step) {
    const date = new Date(Math.round(at * 1440) * 6e4);
    const day = date.getUTCDate() + " " + MONTHS[date.getUTCMonth()];
    const midnight = date.getUTCHours() + date.getUTCMinutes() === 0;
    ticks.push([at, midnight ? day : two(date.getUTCHours()) + ":" + two(date.getUTCMinutes())]);
  }
  return ticks;
}

function before(values, wanted) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A plot of a zoomable figure: its lines and the axis below are drawn again for each view.
function zoomedPlot(plot, data, setView) {
  const svg = plot.querySelector("svg");
  const { frame: [left, top, right, bottom], y: [low, high] } = JSON.parse(plot.querySelector("script").textContent);
  const clip = "clip-" + clips++;
  made("rect", { x: left, y: top, width: right - left, height: bottom - top },
    made("clipPath", { id: clip }, made("defs", {}, svg)));
  const axis = svg.querySelector(".zoomed-axis");
  const label = axis.lastElementChild;
  axis.replaceChildren(label);
  svg.querySelectorAll(".zoomed-line, .zoomed-band").forEach((line) => line.remove());
  const ticks = made("g", {}, svg);
  const lines = made("g", { "clip-path": "url" + "(#" + clip + ")" }, svg);
  const band = data.band || [];
  const dots = data.dots || [];
  const shade = band.length ? made("path", { class: "band" }, lines) : null;
  const paths = data.lines.map((line, order) => made("path", {
    style: "stroke: " + (band.includes(order) ? "none" : line.colour)
      + "; fill: " + (dots.includes(order) ? line.colour : "none") }, lines));
  const chosen = made("rect", { y: top, height: bottom - top, class: "chosen" }, svg);
  const tip = document.createElement("div");
  tip.className = "tip";
  plot.append(tip);
  let view = [0, 1];
  let start = null;

  const toX = (at) => left + (at - view[0]) / (view[1] - view[0]) * (right - left);
  const toY = (value) => bottom - (value - low) / (high - low) * (bottom - top);

  const held = (value) => Math.min(bottom + 900, Math.max(top - 900, toY(value)));

  function shaded(first, last) {
    const [lower, upper] = band.map((order) => data.lines[order].values);
    const known = [];
    for (let at = first; at < last; at++) {
      if (lower[at] !== null && upper[at] !== null) known.push(at);
    }
    const corner = (values) => (at) => toX(data.x[at]).toFixed(1) + " " + held(values[at]).toFixed(1);
    const around = [...known.map(corner(upper)), ...known.reverse().map(corner(lower))];
    return around.length ? "M" + around.join("L") + "Z" : "";
  }

  function isOutside(at, value) {
    const [low, high] = band.map((order) => data.lines[order].values[at]);
    return band.length > 0 && low !== null && high !== null && (value < low || value > high);
  }

  function draw(next) {
    view = next;
    const first = Math.max(0, before(data.x, view[0]) - 1);
    const last = Math.min(data.x.length, before(data.x, view[1]) + 2);
    if (shade) shade.setAttribute("d", shaded(first, last));
    paths.forEach((path, order) => {
      const isDots = dots.includes(order);
      let drawn = "";
      for (let at = first; at < last; at++) {
        const value = data.lines[order].values[at];
        if (value === null) continue;
        const place = toX(data.x[at]).toFixed(1) + " " + held(value).toFixed(1);
        if (!isDots) drawn += (drawn ? "L" : "M") + place;
        else if (isOutside(at, value)) drawn += "M" + place + "m-2 -2l4 4m0 -4l-4 4";
        else drawn += "M" + place + DOT;
      }
      path.setAttribute("d", drawn);
    });
    ticks.replaceChildren();
    const most = Math.max(3, Math.floor((right - left) / 58));
    for (const [at, words] of (data.time ? dateSteps : niceSteps)(view[0], view[1], most)) {
      const x = toX(at);
      made("line", { x1: x, x2: x, y1: top, y2: bottom, class: "tick" }, ticks);
      const half = words.length * 2.3;
      if (x - half < left - 14 || x + half > right + 6) continue;
      made("text", { x: x, y: bottom + 12, "text-anchor": "middle", class: "ticked" }, ticks)
        .textContent = words;
    }
    hide();
  }

  function hide() {
    tip.hidden = true;
    chosen.setAttribute("width", 0);
  }

  function along(event) {
    const shown = svg.getBoundingClientRect();
    const x = (event.clientX - shown.left) * svg.viewBox.baseVal.width / shown.width;
    return Math.min(right, Math.max(left, x));
  }

  const fromX = (x) => view[0] + (x - left) / (right - left) * (view[1] - view[0]);

  function tell(event) {
    const x = along(event);
    if (start !== null) {
      chosen.setAttribute("x", Math.min(start, x));
      chosen.setAttribute("width", Math.abs(x - start));
      return;
    }
    const at = nearest(data.x, fromX(x));
    tip.replaceChildren((data.time ? moment(data.x[at]) + ", " : "") + "row " + shown(data.rows[at]));
    for (const line of data.lines) {
      const colour = document.createElement("i");
      colour.style.background = line.colour;
      const entry = document.createElement("div");
      entry.append(colour, line.name + ": " + shown(line.values[at]));
      tip.append(entry);
    }
    tip.hidden = false;
    const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    const next = x / scale + 10;
    const room = plot.clientWidth - tip.offsetWidth;
    tip.style.left = Math.max(0, next > room ? x / scale - 10 - tip.offsetWidth : next) + "px";
    tip.style.top = top / scale + "px";
  }

  svg.addEventListener("pointerdown", (event) => {
    start = along(event);
    tip.hidden = true;
  });
  svg.addEventListener("pointermove", tell);
  svg.addEventListener("pointerup", (event) => {
    const from = start;
    start = null;
    if (from === null) return;
    const x = along(event);
    if (Math.abs(x - from) < 4) return hide();
    setView([fromX(Math.min(x, from)), fromX(Math.max(x, from))]);
  });
  svg.addEventListener("pointerleave", () => { start = null; hide(); });
  svg.addEventListener("dblclick", () => setView(null));
  return draw;
}

function zoomable(figure) {
  const data = JSON.parse(figure.querySelector("script.curves").textContent);
  const whole = [data.x[0], data.x[data.x.length - 1]];
  const least = Math.min(whole[1] - whole[0], 8 * (whole[1] - whole[0]) / data.x.length);
  let view = whole;
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  const range = document.createElement("span");
  range.className = "range";

  function setView(wanted) {
    let [from, to] = wanted || whole;
    const width = Math.min(whole[1] - whole[0], Math.max(least, to - from));
    from = Math.max(whole[0], Math.min(whole[1] - width, (from + to - width) / 2));
    view = [from, from + width];
    figure.dataset.view = view.join(" ");
    plots.forEach((draw) => draw(view));
    const zoomed = width < whole[1] - whole[0];
    for (const button of buttons.querySelectorAll("button.zoomed")) button.disabled = !zoomed;
    range.textContent = data.time ? moment(view[0]) + " to " + moment(view[1])
      : "rows " + short(Math.round(view[0])) + " to " + short(Math.round(view[1]));
  }

  const middle = () => (view[0] + view[1]) / 2;
  const half = () => (view[1] - view[0]) / 2;
  const shifted = (by) => [view[0] + by * half(), view[1] + by * half()];
  const actions = [
    ["Zoom in", "", () => [middle() - half() / 2, middle() + half() / 2]],
    ["Zoom out", "zoomed", () => [middle() - half() * 2, middle() + half() * 2]],
    ["Earlier", "zoomed", () => shifted(-1)],
    ["Later", "zoomed", () => shifted(1)],
    ["All", "zoomed", () => null],
  ];
  for (const [words, kind, next] of actions) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = kind;
    button.textContent = words;
    button.addEventListener("click", () => setView(next()));
    buttons.append(button);
  }
  buttons.append(range);
  figure.append(buttons);
  const plots = [...figure.querySelectorAll(".plot")].map((plot) => zoomedPlot(plot, data, setView));
  setView(null);
}

// Mark what is wider than its place, until it was scrolled to its end.
function scrollable(part) {
  const tell = () => {
    part.classList.toggle("more", part.scrollLeft + part.clientWidth < part.scrollWidth - 2);
  };
  part.addEventListener("scroll", tell);
  addEventListener("resize", tell);
  tell();
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, place) => {
    const number = row.cells[place].querySelector("[data-value]");
    return number ? Number(number.dataset.value) : row.cells[place].textContent;
  };
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [key(one, place), key(other, place)];
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
}

function unfoldable(tree) {
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  for (const [words, open] of [["Unfold all", true], ["Fold all", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.addEventListener("click", () => {
      for (const node of tree.querySelectorAll("details")) node.open = open;
    });
    buttons.append(button);
  }
  if (tree.querySelector("details")) tree.before(buttons);
}

for (const figure of document.querySelectorAll("figure.chart")) {
  if (figure.querySelector("script")) followPointer(figure);
}
document.querySelectorAll("figure.zoom").forEach(zoomable);
document.querySelectorAll(".scroll").forEach(scrollable);
document.querySelectorAll("table.leaves").forEach(sortable);
document.querySelectorAll(".tree").forEach(unfoldable);
