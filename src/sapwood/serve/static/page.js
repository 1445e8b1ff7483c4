"use strict";
/* The live page: it reads server-sent events by fetch, so that a bearer token can be sent. */

const byId = (id) => document.getElementById(id);
const TOKEN = "sapwood-token";
const MOST_POINTS = 500;  /* that are kept */
const state = { points: [], since: 0, latest: null, model: null, charts: {}, target: 0 };
const PER_TARGET = 4;  /* numbers of each target in a point, and in a point of the curve */

/* -- requests ------------------------------------------------------------------------------- */

function withToken(headers) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
}

async function getJson(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: withToken(options.headers || {}) });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const error = new Error(found.error ? found.error.message : `status ${answer.status}`);
    error.status = answer.status;
    throw error;
  }
  return found;
}

/* -- numbers and elements --------------------------------------------------------------------- */

const shown = (value, digits = 4) =>
  value === null || value === undefined || Number.isNaN(value)
    ? "–"
    : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });
const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
const count = (value) => Number(value || 0).toLocaleString("en");
const size = (bytes) => {
  const units = ["B", "kB", "MB", "GB"];
  let place = 0;
  while (bytes >= 1000 && place < units.length - 1) { bytes /= 1000; place += 1; }
  return `${shown(bytes, 3)} ${units[place]}`;
};

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "text") made.textContent = value;
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/* -- charts ----------------------------------------------------------------------------------- */

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axes() {
  const style = { stroke: color("quiet"), grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("grid") } };
  const whole = (chart, values) => values.map((value) => (Number.isInteger(value) ? count(value) : ""));
  return [{ ...style, values: whole, space: 70 }, { ...style, size: 62, values: (chart, values) => values.map((value) => shown(value, 5)) }];
}

/* Values are in the legend while a row is pointed at. */
const atCursor = (format) => (chart, value) => (value === null || value === undefined ? "" : format(value));
const rowNumber = { label: "row", value: atCursor(count) };

const line = (label, name, extra = {}) => ({
  label, stroke: color(name), width: 1.6, points: { show: false }, value: atCursor(shown), marker: color(name), ...extra,
});

const dots = (label, name, size) =>
  line(label, name, { width: 0, points: { show: true, size, width: 0, fill: color(name) } });

const CHARTS = {
  rows: {
    series: () => [
      rowNumber,
      line("lower", "band", { stroke: "transparent" }),
      line("upper", "band", { stroke: "transparent" }),
      dots("actual", "actual", 5),
      line("predicted", "predicted", { width: 2 }),
    ],
    bands: () => [{ series: [2, 1], fill: color("band") }],
    height: 300,
  },
  error: {
    series: () => [
      rowNumber, line("model", "predicted", { width: 2.2 }),
      line("running mean", "mean", { dash: [6, 4] }), line("last value", "last", { dash: [2, 3] }),
    ],
    height: 230,
  },
  coverage: {
    series: () => [
      rowNumber, line("coverage", "predicted", { width: 2.2, value: atCursor(percent) }),
      line("nominal", "mean", { dash: [6, 4], value: atCursor(percent) }),
    ],
    height: 230,
    range: (chart, least) => [Math.max(0, Math.floor(10 * Math.min(least, 0.85)) / 10), 1],
  },
  classes: {
    place: "rows",
    series: () => [
      rowNumber, dots("correct", "predicted", 5), dots("wrong", "bad", 7),
    ],
    height: 300,
    range: () => [-0.03, 1.03],
  },
  accuracy: {
    place: "error",
    series: () => [
      rowNumber, line("model", "predicted", { width: 2.2, value: atCursor(percent) }),
      line("majority class", "mean", { dash: [6, 4], value: atCursor(percent) }),
      line("last class", "last", { dash: [2, 3], value: atCursor(percent) }),
    ],
    height: 230,
    range: (chart, least) => [Math.max(0, Math.floor(10 * (Math.min(least, 0.95) - 0.02)) / 10), 1.01],
  },
};

function draw(name, data, label) {
  const where = CHARTS[name].place || name;
  const place = byId(`${where}-chart`);
  byId(`${where}-empty`).hidden = data[0].length > 0;
  if (!data[0].length || !place.clientWidth) return;
  const kind = CHARTS[name];
  if (!state.charts[name]) {
    const options = {
      width: place.clientWidth, height: kind.height, series: kind.series(), axes: axes(),
      bands: kind.bands ? kind.bands() : [], cursor: { drag: { x: true, y: false } },
      legend: { markers: { width: 0, fill: (chart, number) => chart.series[number].marker } },
      scales: { x: { time: false }, ...(kind.range ? { y: { range: kind.range } } : {}) },
    };
    state.charts[name] = new uPlot(options, data, place);
    place.setAttribute("role", "img");
  } else {
    state.charts[name].setData(data);
  }
  place.setAttribute("aria-label", label);
}

function redraw() {
  for (const [name, chart] of Object.entries(state.charts)) {
    chart.destroy();
    delete state.charts[name];
  }
  if (state.latest) showCharts(state.latest);
}

function showCharts(news) {
  if (news.task === "classes") { showClassCharts(news); return; }
  const first = 2 + PER_TARGET * state.target;
  const column = (rows, place) => rows.map((row) => row[place]);
  const own = (rows, place) => column(rows, first + place);
  const rows = state.points.slice(innerWidth < 600 ? -70 : -200);
  const last = rows[rows.length - 1] || [];
  draw("rows", [column(rows, 0), ...[2, 3, 1, 0].map((place) => own(rows, place))],
    `Predictions and actuals of ${rows.length} rows. Last row: predicted ${shown(last[first])}, actual ${shown(last[first + 1])}.`);
  const curve = news.curve;
  const end = (curve[curve.length - 1] || []).slice(first);
  draw("error", [column(curve, 0), ...[0, 1, 2].map((place) => own(curve, place))],
    `Mean absolute error of the model ${shown(end[0])}, of the running mean ${shown(end[1])}, of the last value ${shown(end[2])}.`);
  const level = news.levels[news.levels.length - 1];
  byId("coverage-card").hidden = level === undefined;
  if (level !== undefined) {
    byId("coverage-note").textContent = `Share of actuals within the interval; nominal level ${shown(100 * level, 3)} %.`;
    draw("coverage", [column(curve, 0), own(curve, 3), curve.map(() => level)],
      `Coverage ${percent(end[3])}, nominal level ${percent(level)}.`);
  }
}

/* Of a classifier, a point has the predicted and the actual class, and the probability of either. */
function showClassCharts(news) {
  const column = (rows, place) => rows.map((row) => row[place]);
  const rows = state.points.slice(innerWidth < 600 ? -70 : -200);
  const [right, wrong] = [true, false].map((wanted) => rows.map((row) => ((row[2] === row[3]) === wanted ? row[4] : null)));
  const hits = rows.filter((row) => row[2] === row[3]).length;
  draw("classes", [column(rows, 0), right, wrong], `Of the last ${rows.length} rows, ${hits} were predicted correctly.`);
  const curve = news.curve;
  const end = (curve[curve.length - 1] || []).slice(2);
  draw("accuracy", [column(curve, 0), ...[2, 3, 4].map((place) => column(curve, place))],
    `Accuracy of the model ${percent(end[0])}, of the majority class ${percent(end[1])}, of the last class ${percent(end[2])}.`);
}

/* -- what is new --------------------------------------------------------------------------------- */

function showTargets(names) {
  byId("target-line").hidden = names.length < 2;
  if (names.length <= state.target) state.target = 0;
  const options = [...byId("target").options].map((option) => option.text);
  if (options.join("\n") !== names.join("\n"))
    byId("target").replaceChildren(...names.map((name, place) => element("option", { value: place, text: name })));
}

byId("target").addEventListener("change", (event) => {
  state.target = Number(event.target.value);
  showNumbers(state.latest);
  showCharts(state.latest);
});

function showNumbers(news) {
  const errors = Object.values(news.scores.errors || {})[state.target] || {};
  const coverage = Object.values(news.scores.coverage || {})[state.target] || {};
  const level = news.levels.length ? String(news.levels[news.levels.length - 1]) : null;
  const scores = news.task === "classes"
    ? [["Accuracy", percent(errors.accuracy)], ["Log-loss", shown(errors.log_loss, 3)], ["Classes", count(news.classes.length)]]
    : [["MAE", shown(errors.mae)], ["RMSE", shown(errors.rmse)], ["R²", shown(errors.r2, 3)]];
  const tiles = [
    ["Rows learned", count(news.rows)], ...scores,
    ...(level ? [[`Coverage of ${level}`, percent(coverage[level])]] : []),
    ["Pending labels", count(news.pending)], ["Drift events", count(news.scores.drifts)], ["Model size", size(news.bytes)],
  ];
  byId("numbers").replaceChildren(...tiles.map(([name, value]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text: value }))));
}

/* The twelve largest shares as bars in a list; the length of a bar is relative to `most`. */
function bars(list, pairs, most) {
  const shares = pairs.sort((one, other) => other[1] - one[1]).slice(0, 12);
  list.replaceChildren(...shares.map(([name, share]) => {
    const fill = element("span", { class: "fill" });
    fill.style.width = `${Math.max(0, 100 * share / (most || Math.max(shares[0][1], 1e-9)))}%`;
    return element("li", {}, element("span", { class: "name", text: name, title: name }),
      element("span", { class: "track", "aria-hidden": "true" }, fill), element("span", { class: "share", text: percent(share) }));
  }));
  return list;
}

function showImportances(found) {
  const pairs = Object.entries(found);
  byId("importances-empty").hidden = pairs.length > 0;
  bars(byId("importances"), pairs);
}

function showDrifts(events) {
  byId("drifts").hidden = events.length === 0;
  byId("drifts-empty").hidden = events.length > 0;
  byId("drifts").tBodies[0].replaceChildren(...[...events].reverse().map((event) =>
    element("tr", {}, element("td", { class: "when", text: new Date(1000 * event.time).toISOString().slice(0, 16).replace("T", " ") }),
      element("td", { text: event.text }))));
}

function showClassTexts() {
  byId("rows-title").textContent = "Probability of the actual class";
  byId("rows-note").textContent = "The last scored rows. Each dot is the probability that was issued for the class that was observed.";
  byId("error-title").textContent = "Accuracy and baselines";
  byId("error-note").textContent = "Share of correct classes, exponentially weighted (half-life 693 rows).";
}

function take(news) {
  state.latest = news;
  if (news.points.length && news.points[0][0] <= state.since) state.points = [];
  state.points = state.points.concat(news.points).slice(-MOST_POINTS);
  if (news.points.length) state.since = news.points[news.points.length - 1][0];
  byId("kind").textContent = news.kind + (news.read_only ? ", read-only" : "");
  if (news.task === "classes") showClassTexts();
  if (news.read_only) byId("rows-empty").textContent = "This server does not learn, so no rows are scored.";
  showTargets(Object.keys(news.scores.errors || {}));
  showNumbers(news);
  showCharts(news);
  showImportances(news.importances);
  showDrifts(news.drifts);
}

function showStatus(words, kind) {
  if (byId("status").textContent !== words) byId("status").textContent = words;
  byId("status").dataset.state = kind;
}

async function listen() {
  let wait = 500;
  for (;;) {
    try {
      const answer = await fetch("events", { headers: withToken({ Accept: "text/event-stream" }) });
      if (answer.status === 401) { askForToken(); return; }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      showStatus("Live", "live");
      wait = 500;
      if (!state.model) loadModel();
      await readEvents(answer.body.getReader());
    } catch (error) { /* the server is away: another attempt follows */ }
    state.since = 0;
    showStatus("Connection lost; reconnecting…", "lost");
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(2 * wait, 8000);
  }
}

async function readEvents(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) take(JSON.parse(part.slice(6)));
  }
}

function askForToken() {
  showStatus("Token required", "lost");
  if (sessionStorage.getItem(TOKEN)) byId("token-error").textContent = "The server does not accept this token.";
  byId("token-form").hidden = false;
  byId("token").focus();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, byId("token").value.trim());
  byId("token").value = "";
  byId("token-error").textContent = "";
  byId("token-form").hidden = true;
  listen();
});

/* -- the model: a form and a tree --------------------------------------------------------------- */

async function loadModel() {
  try {
    state.model = await getJson("model");
  } catch (error) { return; }
  const features = Object.entries(state.model.schema.features).filter(([, kind]) => kind !== "unknown");
  byId("fields").replaceChildren(...features.map(([name, kind], place) => {
    const input = element("input", { id: `field-${place}`, name, autocomplete: "off", "data-kind": kind });
    if (kind === "number") input.setAttribute("inputmode", "decimal");
    return element("div", {}, element("label", { for: `field-${place}`, text: name }), input);
  }));
  if (!features.length) byId("fields").append(element("p", { class: "quiet", text: "The model knows no features yet." }));
  await loadTree(0);
}

function rowOf(form) {
  const row = {};
  for (const input of form.querySelectorAll("input")) {
    const text = input.value.trim();
    if (text === "") continue;
    const number = Number(text.replace(",", "."));
    row[input.name] = input.dataset.kind === "number" && !Number.isNaN(number) ? number : text;
  }
  return row;
}

byId("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("try-error").textContent = "";
  const levels = state.model && state.model.levels.length ? "&intervals=true" : "";
  const options = {
    method: "POST", body: JSON.stringify({ x: rowOf(event.target) }), headers: { "Content-Type": "application/json" },
  };
  const explain = Boolean(state.model && state.model.explains);
  try {
    showAnswer(await getJson(`predict?explain=${explain}${levels}`, options));
  } catch (error) {
    byId("answer").replaceChildren();
    byId("try-error").textContent = error.message;
  }
});

function showAnswer(found) {
  const value = found.predictions[0];
  const text = (single) => (found.classes ? (single === null ? "–" : String(single)) : shown(single, 6));
  const parts = [element("p", { class: "result", text: value !== null && typeof value === "object"
    ? Object.entries(value).map(([name, each]) => `${name}: ${shown(each, 5)}`).join(", ") : text(value) })];
  if (found.classes) parts.push(classBars(found.classes, found.probabilities[0]));
  for (const [level, bounds] of Object.entries(found.intervals || {})) {
    const ends = [bounds.lower[0], bounds.upper[0]];
    const several = ends.every((end) => end !== null && typeof end === "object");
    const pairs = several ? Object.keys(ends[0]).map((name) => [` of ${name}`, ends[0][name], ends[1][name]]) : [["", ...ends]];
    parts.push(...pairs.map(([name, lower, upper]) =>
      element("p", { class: "quiet", text: `${shown(100 * level, 3)} % interval${name}: ${shown(lower, 5)} to ${shown(upper, 5)}` })));
  }
  const why = (found.explanations || [])[0];
  const path = why && (Array.isArray(why.path) ? why.path : (why.path || {}).path);  /* of an ensemble, that of a tree */
  if (Array.isArray(path)) parts.push(pathTable(path));
  if (why) parts.push(element("details", {}, element("summary", { text: "Explanation in full" }), element("pre", { text: why.text, tabindex: "0" })));
  byId("answer").replaceChildren(...parts);
}

function classBars(classes, shares) {
  const pairs = classes.map((label, place) => [String(label), shares[place]]);
  return bars(element("ol", { class: "bars", "aria-label": "Probability of each class" }), pairs, 1);
}

function pathTable(path) {
  const head = element("tr", {}, element("th", { scope: "col", text: "Path" }), element("th", { scope: "col", class: "number", text: "Value" }),
    element("th", { scope: "col", class: "number", text: "Mean" }));
  const rows = path.map((step) => element("tr", {}, element("td", { text: step.condition }),
    element("td", { class: "number", text: step.feature === null ? "" : step.missing ? "missing" : typeof step.value === "number" ? shown(step.value) : String(step.value) }),
    element("td", { class: "number", text: shown(step.mean) })));
  return element("table", {}, element("caption", { class: "hidden", text: "The path through the tree" }),
    element("thead", {}, head), element("tbody", {}, ...rows));
}

async function loadTree(member) {
  let found;
  try { found = await getJson(`model/tree?member=${member}`); } catch (error) { return; }
  byId("tree-empty").hidden = found.nodes.length > 0;
  const several = found.members > 1;
  byId("member").hidden = byId("member-label").hidden = !several;
  if (several && byId("member").options.length !== found.members)
    byId("member").replaceChildren(...Array.from({ length: found.members }, (_, place) => element("option", { value: place, text: String(place + 1) })));
  const nodes = new Map(found.nodes.map((node) => [node.node, node]));
  byId("tree").replaceChildren(...(found.nodes.length ? [node_element(nodes, 0, 0)] : []));
}

function meansOf(node) {
  const pairs = Object.entries(node.means || {}).filter(([, mean]) => mean !== null);
  if (!pairs.length) return node.mean === null ? "" : `mean ${shown(node.mean)}, `;
  const ofClasses = state.model && state.model.task === "classes";
  if (ofClasses) pairs.sort((one, other) => other[1] - one[1]);
  return pairs.slice(0, ofClasses ? 2 : 3).map(([name, mean]) =>
    `${name} ${ofClasses ? `${(100 * mean).toFixed(0)} %` : shown(mean)}, `).join("");
}

function node_element(nodes, number, depth) {
  const node = nodes.get(number);
  const words = [element("span", { text: node.condition }),
    element("span", { class: "facts", text: `${meansOf(node)}${count(Math.round(node.weight))} rows` })];
  if (node.left < 0 || !nodes.has(node.left) || !nodes.has(node.right)) return element("div", { class: "leaf" }, ...words);
  const made = element("details", {}, element("summary", {}, ...words));
  const fill = () => { if (made.childElementCount === 1) made.append(node_element(nodes, node.left, depth + 1), node_element(nodes, node.right, depth + 1)); };
  made.addEventListener("toggle", fill);
  if (depth < 2) { fill(); made.open = true; }
  return made;
}

byId("member").addEventListener("change", (event) => loadTree(Number(event.target.value)));
byId("reload").addEventListener("click", () => loadTree(Number(byId("member").value || 0)));

let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(redraw, 150); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
listen();
