
"use strict";
// The page is complete without this: it adds numbers to the curves, and order to the leaves.

const SVG = "http://www.w3.org/2000/svg";

function made(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
  parent.append(element);
  return element;
}

function told(value) {
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
    tip.replaceChildren("row " + told(data.rows[place]));
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
      entry.append(colour, line.name + ": " + told(value));
      tip.append(entry);
    });
    tip.hidden = false;
    const room = plot.clientWidth - tip.offsetWidth;
    const beside = x / scale + 10;
    tip.style.left = Math.max(0, beside > room ? x / scale - 10 - tip.offsetWidth : beside) + "px";
    tip.style.top = top / scale + "px";
  }

  hide();
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
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
document.querySelectorAll("table.leaves").forEach(sortable);
document.querySelectorAll(".tree").forEach(unfoldable);
