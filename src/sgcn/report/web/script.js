// The page itself: what is shown, the switches, and following a run that is not finished.

const metricsOf = (runs) => [
  { key: "loss", title: "Loss", note: "training, each step", log: true },
  ...scoresOf(runs).map((name) =>
    ({ key: `validation_${name}`, title: `Validation ${scoreLabel(name)}`, note: "", log: name === "loss" })),
  { key: "gradient_norm", title: "Gradient norm", note: "of what the optimiser gets", log: true },
  { key: "gradient_error", title: "Gradient error", note: "relative mean square", log: true },
  { key: "norm_growth", title: "Norm growth", note: "of the tables since the snapshot", log: false },
];
const POLL = 1500;

const view = {
  axis: "step", smooth: true, log: false, snapshots: true, onlyDifferences: true,
  zoom: null, cursor: null, hidden: new Set(), sort: { key: null, down: false }, charts: [],

  shown() { return this.runs.filter((run) => !this.hidden.has(run.name)); },

  /** The part of the axis in view: where one zoomed to, or all that the shown runs have. */
  range() {
    if (this.zoom) return this.zoom;
    let high = 0;
    for (const run of this.shown())
      for (const curve of Object.values(run.curves)) high = Math.max(high, curve[this.axis].at(-1) ?? 0);
    return [0, high || 1];
  },

  zoomTo(from, to) {
    this.zoom = null;
    if (from !== undefined) {
      const [low, high] = this.range();
      const a = Math.max(low, from), b = Math.min(high, to);
      if (b > a && !(a === low && b === high)) this.zoom = [a, b];
    }
    this.render();
  },

  zoomBy(factor) {
    const [low, high] = this.range(), half = ((high - low) * factor) / 2;
    const middle = this.cursor ?? (low + high) / 2;
    this.zoomTo(middle - half, middle + half);
  },

  render() {
    for (const chart of this.charts) chart.render();
    byId("zoom-reset").disabled = byId("zoom-out").disabled = !this.zoom;
  },

  /** Put the cursor of all charts at x; the chart under it tells its numbers. */
  point(chart, x, event) {
    this.cursor = x;
    let points = [];
    for (const each of this.charts) {
      const found = each.cursor();
      if (each === chart) points = found;
    }
    tell(chart, x, points, event);
  },
};

function tell(chart, x, points, event) {
  const tip = byId("tip");
  tip.hidden = !points.length;
  if (tip.hidden) return;
  const at = view.axis === "step" ? `step ${fixed(Math.round(x), 0)}` : `${digits(x)} s`;
  const where = points.some((point) => point.smooth) ? `${at}, smoothed` : at;
  tip.replaceChildren(make("strong", {}, where), ...points.map(({ run, value }) =>
    make("div", {}, swatch(run), make("span", {}, run.name), make("span", {}, digits(value)))));
  const area = chart.plot.getBoundingClientRect();
  const left = event ? event.clientX : area.left + chart.x(x), top = event ? event.clientY : area.top + 20;
  const space = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, left + 16 > space ? left - tip.offsetWidth - 16 : left + 16)}px`;
  tip.style.top = `${Math.max(8, Math.min(top + 12, window.innerHeight - tip.offsetHeight - 8))}px`;
  if (!event) byId("spoken").textContent = `${where}: ${points.map((p) => `${p.run.name} ${digits(p.value)}`).join(", ")}`;
}

// -- what stands above the charts ------------------------------------------------------------------

function headline() {
  const { runs } = view, first = runs[0].summary;
  const same = (of) => new Set(runs.map(of)).size === 1;
  const one = runs.length === 1;
  const title = one ? runs[0].name : `${runs.length} runs${same((run) => run.summary.data) ? ` on ${first.data ?? NONE}` : ""}`;
  byId("title").textContent = title;
  document.title = `${title} · sgcn report`;
  const shared = SHARED.filter((key) => (one || key !== "data") && same((run) => run.summary[key]));
  byId("subtitle").textContent = shared.map((key) => `${key} ${first[key] ?? NONE}`).join(" · ");
  byId("footer").textContent = `Made by sgcn ${view.data.version}.`;
}

/** The best of the runs at a glance; runs on different graphs are no match for each other. */
function figures() {
  const { runs } = view, one = runs.length === 1;
  byId("figures").hidden = new Set(runs.map((run) => run.summary.data)).size > 1;
  const [first] = scoresOf(runs), score = scoreLabel(first);
  const wanted = one
    ? [[`test_${first}`, `Test ${score}`], [`validation_${first}`, `Validation ${score}`], ["steps", "Steps"], ["seconds", "Time"], ["memory", "Peak memory"]]
    : [[`test_${first}`, `Best test ${score}`], [`validation_${first}`, `Best validation ${score}`], ["seconds", "Shortest run"], ["memory", "Least memory"]];
  const units = { seconds: "s", memory: "MB" };
  byId("figures").replaceChildren(...wanted.flatMap(([key, title]) => {
    const column = columnsOf(runs).find((each) => each.key === key);
    if (!column) return [];
    const having = runs.filter((run) => isNumber(column.of(run)) && (one || run.finished));
    if (!having.length) return [];
    const value = Math[column.best ?? "max"](...having.map(column.of));
    const who = having.filter((run) => column.of(run) === value);
    const dd = make("dd", { class: "value", "data-key": key, "data-value": String(value), title: String(value) },
      fixed(value, column.decimals ?? decimalsFor([value])));
    if (units[key]) dd.append(" ", make("small", {}, units[key]));
    const of = one ? [] : [make("dd", { class: "of" }, who.length > 2 ? `${who.length} runs` : who.map((run) => run.name).join(", "))];
    return [make("div", {}, make("dt", {}, title), dd, ...of)];
  }));
}

function legend() {
  const names = view.runs.map((run) => run.name);
  const buttons = view.runs.map((run) => {
    const button = make("button", { type: "button", "data-run": run.name }, swatch(run), make("span", {}, run.name));
    button.addEventListener("click", () => {
      if (!view.hidden.delete(run.name)) view.hidden.add(run.name);
      show();
    });
    return button;
  });
  const all = make("button", { type: "button", class: "all" }, "");
  all.addEventListener("click", () => {
    view.hidden = new Set(view.hidden.size ? [] : names);
    show();
  });
  const show = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(!view.hidden.has(button.dataset.run)));
    all.textContent = view.hidden.size ? "Show all" : "Hide all";
    view.render();
  };
  byId("legend").replaceChildren(...buttons, ...(names.length > 2 ? [all] : []));
  for (const button of buttons) button.setAttribute("aria-pressed", String(!view.hidden.has(button.dataset.run)));
  all.textContent = view.hidden.size ? "Show all" : "Hide all";
}

// -- data in -----------------------------------------------------------------------------------------

/** Take in data, at the start and whenever a live run has more; keeps what the reader has chosen. */
function accept(data) {
  const before = view.runs?.map((run) => run.name).join("\n");
  view.data = data;
  view.runs = data.runs.map((run, index) => ({ ...run, index }));
  const names = view.runs.map((run) => run.name).join("\n");
  const metrics = metricsOf(view.runs).filter((metric) => view.runs.some((run) => run.curves[metric.key]));
  const columns = runColumns(view.runs).map((column) => column.key).join("\n");
  if (names !== before) legend();
  if (columns !== view.columns) sortHead(view);
  view.columns = columns;
  if (metrics.length !== view.charts.length) {
    view.charts = metrics.map((metric) => new Chart(metric, view));
    byId("charts").replaceChildren(...view.charts.map((chart) => chart.element));
  }
  const noisy = view.runs.some((run) => Object.values(run.curves).some((curve) => curve.smooth));
  document.querySelector('[data-switch="smooth"]').hidden = !noisy; // short runs are shown as they are
  headline();
  figures();
  sortedRows(view);
  timeTables(view);
  memoryTable(view);
  configTable(view);
  view.render();
}

/** Ask for news until every run is finished. */
async function follow() {
  const status = byId("status");
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };
  try {
    const answer = await fetch(`data.json?seen=${view.data.live}`);
    if (answer.status === 200) accept(await answer.json());
    else if (answer.status !== 204) throw new Error(await answer.text());
    say(view.runs.every((run) => run.finished) ? "finished" : view.charts.length ? "live" : "waiting for the first step");
  } catch (error) {
    say(error instanceof TypeError ? "the server has ended" : error.message);
  }
  if (!view.runs.every((run) => run.finished)) setTimeout(follow, POLL);
}

// -- switches ----------------------------------------------------------------------------------------

function pressed(button, on) { button.setAttribute("aria-pressed", String(on)); }

for (const button of document.querySelectorAll("[data-axis]"))
  button.addEventListener("click", () => {
    view.axis = button.dataset.axis;
    view.zoom = view.cursor = null;
    for (const each of document.querySelectorAll("[data-axis]")) pressed(each, each === button);
    view.render();
  });

for (const button of document.querySelectorAll("[data-switch]"))
  button.addEventListener("click", () => {
    view[button.dataset.switch] = !view[button.dataset.switch];
    pressed(button, view[button.dataset.switch]);
    view.render();
  });

byId("zoom-in").addEventListener("click", () => view.zoomBy(0.5));
byId("zoom-out").addEventListener("click", () => view.zoomBy(2));
byId("zoom-reset").addEventListener("click", () => view.zoomTo());

byId("differences").addEventListener("click", (event) => {
  view.onlyDifferences = !view.onlyDifferences;
  pressed(event.currentTarget, view.onlyDifferences);
  configTable(view);
});

const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  pressed(byId("theme"), isDark());
});
system.addEventListener("change", () => pressed(byId("theme"), isDark()));
pressed(byId("theme"), isDark());

accept(JSON.parse(byId("data").textContent));
let width = byId("charts").clientWidth;
new ResizeObserver(() => {
  if (width === byId("charts").clientWidth) return; // drawing changes the height, which is no news
  width = byId("charts").clientWidth;
  view.render();
}).observe(byId("charts"));
if (view.data.live) follow();
