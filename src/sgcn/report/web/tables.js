// The tables: runs (sortable), time, memory, configuration.

const PARTS_TITLES = { sampling: "Sampling", transfer: "Transfer", compute: "Compute", snapshot: "Snapshots",
  evaluation: "Evaluation", rest: "Rest" };

/** What validation and test nodes are scored by in any of the runs, the loss last. */
function scoresOf(runs) {
  const scores = runs.flatMap(({ summary }) => [summary.validation, summary.test].filter(Boolean));
  const names = new Set(scores.flatMap(Object.keys));
  names.delete("loss");
  return [...names, "loss"];
}
const scoreLabel = (name) => view.data.metrics[name]?.label ?? name;

/** The column of a score; what is better is not known of a function of one's own. */
function scoreColumn(runs, part, title, name) {
  const of = (run) => run.summary[part]?.[name], large = runs.map(of).some((value) => Math.abs(value) >= 100);
  return { key: `${part}_${name}`, title: `${title} ${scoreLabel(name)}`, of, ...(large ? {} : { decimals: 4 }),
    best: name === "loss" ? "min" : view.data.metrics[name]?.best };
}

/** A column for each option in which runs of the same data, sampler and estimator differ, besides the seed. */
function variedColumns(runs) {
  const kind = ({ summary }) => [summary.data, summary.sampler, summary.estimator].join("\n"), firsts = new Map();
  for (const run of runs) if (!firsts.has(kind(run))) firsts.set(kind(run), run);
  const varied = (key) => key !== "training.seed" && runs.every((run) => key in run.config)
    && runs.some((run) => run.config[key] !== firsts.get(kind(run)).config[key]);
  return Object.keys(runs[0].config).filter(varied).map((key) => ({ key, title: key, of: (run) => run.config[key], option: true }));
}

/** Columns of the table of runs: key, title, value of a summary, decimals (or digits of the column). */
const columnsOf = (runs) => [
  { key: "name", title: "Run", of: (run) => run.name },
  { key: "data", title: "Data", of: (run) => run.summary.data },
  { key: "sampler", title: "Sampler", of: (run) => run.summary.sampler },
  { key: "estimator", title: "Estimator", of: (run) => run.summary.estimator },
  { key: "seed", title: "Seed", of: (run) => run.summary.seed, decimals: 0 },
  ...variedColumns(runs),
  ...scoresOf(runs).flatMap((name) => [scoreColumn(runs, "test", "Test", name),
    ...(name === "loss" ? [] : [scoreColumn(runs, "validation", "Val.", name)])]),
  { key: "best_step", title: "Best step", of: (run) => run.summary.best_step, decimals: 0 },
  { key: "steps", title: "Steps", of: (run) => run.summary.steps, decimals: 0 },
  { key: "snapshots", title: "Snapshots", of: (run) => run.summary.snapshots, decimals: 0 },
  { key: "restarts", title: "Restarts", of: (run) => run.summary.restarts, decimals: 0 },
  { key: "seconds", title: "Seconds", of: (run) => run.summary.seconds?.total, best: "min" },
  { key: "memory", title: "Memory, MB", of: (run) => run.summary.peak_rss_mb, decimals: 0, best: "min" },
];
const isText = (column) => column.option || ["name", "data", "sampler", "estimator"].includes(column.key);

/** A cell with a number for people, and the exact one for whoever asks. */
function numberCell(value, decimals, attributes = {}) {
  const exact = isNumber(value) ? { "data-value": String(value), title: String(value) } : {};
  return make("td", { class: "number", ...exact, ...attributes }, fixed(value, decimals));
}

function runHeading(run) {
  const cell = make("th", { scope: "row" }, swatch(run), " ", run.name);
  if (!run.finished) cell.append(make("span", { class: "state" }, "not finished"));
  return cell;
}

/** What is the same in all runs stands above the page, not in every row. */
const SHARED = ["data", "sampler", "estimator", "seed"];

function runColumns(runs) {
  const tells = (column) => !SHARED.includes(column.key) || new Set(runs.map(column.of)).size > 1;
  return columnsOf(runs).filter(tells);
}

function sortHead(view) {
  const columns = runColumns(view.runs);
  const row = byId("runs-table").tHead.rows[0];
  row.replaceChildren(...columns.map((column) => {
    const button = make("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      const again = view.sort.key === column.key;
      view.sort = { key: column.key, down: again ? !view.sort.down : !isText(column) };
      sortedRows(view);
    });
    return make("th", { scope: "col", "data-key": column.key, ...(isText(column) ? {} : { class: "number" }) }, button);
  }));
}

function sortedRows(view) {
  const columns = runColumns(view.runs), { key, down } = view.sort;
  const by = columnsOf(view.runs).find((column) => column.key === key);
  const sorted = [...view.runs];
  if (by) sorted.sort((a, b) => compare(by.of(a), by.of(b), down));
  for (const head of byId("runs-table").tHead.rows[0].cells)
    head.setAttribute("aria-sort", head.dataset.key === key ? (down ? "descending" : "ascending") : "none");
  const all = (column) => view.runs.map(column.of).filter(isNumber);
  const comparable = new Set(view.runs.map((run) => run.summary.data)).size === 1;
  byId("runs-table").tBodies[0].replaceChildren(...sorted.map((run) =>
    make("tr", { "data-run": run.name }, ...columns.map((column) => {
      const value = column.of(run);
      if (column.key === "name") return runHeading(run);
      if (isText(column)) return make("td", { "data-key": column.key }, value ?? NONE);
      const cell = numberCell(value, column.decimals ?? decimalsFor(all(column)), { "data-key": column.key });
      if (comparable && column.best && all(column).length > 1 && value === Math[column.best](...all(column))) cell.classList.add("best");
      return cell;
    }))));
}

/** Missing values last, in either direction. */
function compare(a, b, down) {
  const missing = (value) => value === undefined || value === null;
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order = isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}

/** Seconds of each part; what no part accounts for is the rest. */
function partsOf(run, parts) {
  const seconds = run.summary.seconds ?? {};
  const known = parts.map((part) => [part, seconds[part]]);
  const sum = known.reduce((total, [, value]) => total + (isNumber(value) ? value : 0), 0);
  return [...known, ["rest", isNumber(seconds.total) ? Math.max(0, seconds.total - sum) : undefined]];
}

function timeTables(view) {
  const runs = view.runs, parts = view.data.parts;
  const longest = Math.max(1e-9, ...runs.map((run) => run.summary.seconds?.total ?? 0));
  const names = [...parts, "rest"];
  const decimals = decimalsFor([longest]);
  byId("time-bars").replaceChildren(make("div", { class: "parts" }, ...runs.flatMap((run) => {
    const track = make("div", { class: "track" });
    partsOf(run, parts).forEach(([, value], k) => {
      if (!value) return;
      const bar = make("span", { class: `bar part-${k}` });
      bar.style.width = `${(100 * value) / longest}%`;
      track.append(bar);
    });
    return [make("span", {}, run.name), track];
  })));
  const table = byId("time-table");
  table.tHead.rows[0].replaceChildren(make("th", { scope: "col" }, "Seconds"), ...names.map((name, k) =>
    make("th", { scope: "col", class: "number" }, make("span", { class: `chip part-${k}`, "aria-hidden": "true" }), PARTS_TITLES[name] ?? name)),
    make("th", { scope: "col", class: "number" }, "Total"));
  table.tBodies[0].replaceChildren(...runs.map((run) => {
    const total = run.summary.seconds?.total;
    return make("tr", { "data-run": run.name }, make("th", { scope: "row" }, run.name),
      ...partsOf(run, parts).map(([part, value]) => {
        const cell = numberCell(value, decimals, { "data-key": part });
        if (isNumber(value) && total) cell.append(make("span", { class: "share" }, `${fixed((100 * value) / total, 0)}%`));
        return cell;
      }),
      numberCell(total, decimals, { "data-key": "total" }));
  }));
}

function memoryTable(view) {
  const table = byId("memory-table");
  const most = Math.max(1, ...view.runs.map((run) => run.summary.peak_rss_mb ?? 0));
  table.tHead.rows[0].replaceChildren(make("th", { scope: "col" }, "Run"),
    make("th", { scope: "col" }, make("span", { class: "unseen" }, "Bar")), make("th", { scope: "col", class: "number" }, "Peak, MB"));
  table.tBodies[0].replaceChildren(...view.runs.map((run) => {
    const bar = make("span", { class: `bar ${colour(run)}` });
    bar.style.width = `${(100 * (run.summary.peak_rss_mb ?? 0)) / most}%`;
    bar.hidden = !run.summary.peak_rss_mb;
    return make("tr", { "data-run": run.name }, make("th", { scope: "row" }, run.name),
      make("td", { "aria-hidden": "true" }, bar), numberCell(run.summary.peak_rss_mb, 0, { "data-key": "memory" }));
  }));
}

/** The options of the only run. */
function configList(view) {
  const options = Object.entries(view.runs[0].config);
  byId("config-list").replaceChildren(...options.map(([key, value]) =>
    make("div", { "data-key": key }, make("dt", {}, make("code", {}, key)), make("dd", {}, make("code", {}, value)))));
}

/** The options of several runs side by side. */
function configTable(view) {
  const runs = view.runs, table = byId("config-table");
  const alone = runs.length < 2;
  byId("config-list").hidden = !alone;
  table.hidden = byId("differences").hidden = alone;
  if (alone) return configList(view);
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.config)))];
  const differs = (key) => new Set(runs.map((run) => run.config[key])).size > 1;
  const listed = view.onlyDifferences ? keys.filter(differs) : keys;
  table.tHead.rows[0].replaceChildren(make("th", { scope: "col" }, "Option"),
    ...runs.map((run) => make("th", { scope: "col" }, run.name)));
  table.tBodies[0].replaceChildren(...listed.map((key) =>
    make("tr", { "data-key": key, ...(differs(key) && { class: "differs" }) },
      make("th", { scope: "row" }, make("code", {}, key), ...(differs(key) ? [make("span", { class: "unseen" }, " differs")] : [])),
      ...runs.map((run) => make("td", {}, make("code", {}, run.config[key] ?? NONE))))));
  table.hidden = !listed.length;
  const same = keys.length - listed.length;
  byId("config-note").textContent = !listed.length ? "All options are the same."
    : same ? `${same} other options are the same in all runs.` : "";
}
