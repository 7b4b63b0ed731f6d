// One chart: curves of the shown runs over the shared axis, a cursor, and zooming by dragging.

const DASHES = ["", "7 4", "2 4"];
const COLOURS = 6;

const colour = (run) => `run-${run.index % COLOURS}`;
const dash = (run) => DASHES[Math.floor(run.index / COLOURS) % DASHES.length];

function swatch(run) {
  const line = draw("line", { x1: 1, x2: 21, y1: 5, y2: 5, class: colour(run), "stroke-dasharray": dash(run) });
  return draw("svg", { class: "swatch", viewBox: "0 0 22 10", "aria-hidden": "true" }, line);
}

/** The place in ascending `xs` that is nearest to x. */
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

class Chart {
  constructor(metric, view) {
    this.metric = metric;
    this.view = view;
    this.plot = make("div", { class: "plot", tabindex: "0", role: "group", "aria-roledescription": "chart",
      "aria-describedby": `summary-${metric.key}` });
    this.table = make("table");
    this.summary = make("p", { class: "unseen", id: `summary-${metric.key}` });
    this.element = make("figure", { class: "card chart", id: `chart-${metric.key}` },
      make("figcaption", {}, make("h3", {}, metric.title), make("span", { class: "quiet" }, metric.note)),
      this.plot, this.summary,
      make("details", {}, make("summary", {}, "Numbers"), make("div", { class: "scroller", tabindex: "0" }, this.table)));
    this.listen();
  }

  /** What is drawn: for each shown run its line and, behind a smooth one, the raw values. */
  lines() {
    const found = [];
    for (const run of this.view.shown()) {
      const raw = run.curves[this.metric.key];
      if (!raw) continue;
      const smooth = this.view.smooth && raw.smooth;
      found.push({ run, main: smooth || raw, behind: smooth ? raw : null });
    }
    return found;
  }

  render() {
    const { axis, snapshots } = this.view;
    const lines = this.lines();
    const marked = snapshots ? lines.filter(({ run }) => run.snapshots.step.length) : [];
    const width = Math.max(200, this.plot.clientWidth), rows = marked.length;
    const rug = rows ? Math.min(8, 48 / rows) : 0;
    const base = width < 420 ? 200 : 230;
    this.box = { left: 46, right: width - 10, top: 8, bottom: base, rug };
    const height = base + rows * rug + (rows ? 6 : 0) + 22;
    const [x0, x1] = this.view.range();
    const [y0, y1] = this.extent(lines, x0, x1);
    const log = this.log;
    const { left, right, bottom, top } = this.box;
    const level = log ? Math.log : (value) => value;
    this.x = (value) => left + ((value - x0) / (x1 - x0)) * (right - left);
    this.y = (value) => bottom - ((level(value) - level(y0)) / (level(y1) - level(y0))) * (bottom - top);
    this.unx = (pixel) => x0 + ((pixel - left) / (right - left)) * (x1 - x0);

    const clip = `clip-${this.metric.key}`;
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" },
      draw("clipPath", { id: clip }, draw("rect", { x: left, y: 0, width: right - left, height })));
    this.axes(svg, height, x0, x1, y0, y1);
    const inside = draw("g", { "clip-path": `url(#${clip})` });
    for (const { run, behind } of lines) if (behind) inside.append(this.path(run, behind, x0, x1, "curve faint"));
    for (const { run, main } of lines) inside.append(this.path(run, main, x0, x1, "curve"), ...this.dots(run, main, x0, x1));
    marked.forEach(({ run }, row) => inside.append(...this.ticksOf(run, row, x0, x1)));
    if (!lines.length) svg.append(draw("text", { x: (left + right) / 2, y: bottom / 2, "text-anchor": "middle" }, "no run is shown"));
    this.marks = draw("g");
    svg.append(inside, this.marks);
    this.plot.replaceChildren(svg);
    this.plot.setAttribute("aria-label", `${this.metric.title} against ${axis === "step" ? "steps" : "seconds"}`);
    this.describe(lines);
    this.cursor();
  }

  /** The range of values between x0 and x1, with a little air. */
  extent(lines, x0, x1) {
    let low = Infinity, high = -Infinity, least = Infinity;
    for (const { main, behind } of lines)
      for (const curve of [main, behind]) {
        if (!curve) continue;
        const xs = curve[this.view.axis];
        curve.value.forEach((value, k) => {
          if (value === null || xs[k] < x0 || xs[k] > x1) return;
          low = Math.min(low, value);
          high = Math.max(high, value);
          if (value > 0) least = Math.min(least, value);
        });
      }
    this.log = this.view.log && this.metric.log && least < Infinity && high > 0;
    if (low > high) return [0, 1];
    if (this.log) return least < high ? [least / 1.1, high * 1.1] : [least / 2, high * 2];
    const air = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5;
    const floor = low >= 0 ? 0 : -Infinity;
    return [Math.max(floor, low - air), high + air];
  }

  axes(svg, height, x0, x1, y0, y1) {
    const { left, right, bottom } = this.box;
    const vertical = (this.log ? logTicks : ticks)(y0, y1, 5);
    for (const value of vertical.values) {
      const y = this.y(value);
      svg.append(draw("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
        draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, vertical.text(value)));
    }
    const across = ticks(x0, x1, (right - left) / 90);
    svg.append(draw("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
    for (const value of across.values) {
      if (this.view.axis === "step" && !Number.isInteger(Number(value.toFixed(6)))) continue;
      const x = this.x(value), anchor = x > right - 14 ? "end" : "middle";
      svg.append(draw("text", { x: Math.min(x, right), y: height - 4, "text-anchor": anchor }, across.text(value)));
    }
  }

  /** The places of a curve that are in view, and one more on each side. */
  window(xs, x0, x1) {
    const first = nearest(xs, x0), last = nearest(xs, x1);
    return [Math.max(0, first - 1), Math.min(xs.length - 1, last + 1)];
  }

  path(run, curve, x0, x1, kind) {
    const xs = curve[this.view.axis], [first, last] = this.window(xs, x0, x1);
    let text = "", pen = "M";
    for (let k = first; k <= last; k++) {
      const value = curve.value[k];
      if (value === null || (this.log && value <= 0)) { pen = "M"; continue; }
      text += `${pen}${this.x(xs[k]).toFixed(1)} ${this.y(value).toFixed(1)}`;
      pen = "L";
    }
    return draw("path", { class: `${kind} ${colour(run)}`, d: text, "stroke-dasharray": dash(run) });
  }

  /** Dots on a line of few points, where one would like to see which were measured. */
  dots(run, curve, x0, x1) {
    const xs = curve[this.view.axis], [first, last] = this.window(xs, x0, x1);
    if (last - first > 30) return [];
    const made = [];
    for (let k = first; k <= last; k++) {
      const value = curve.value[k];
      if (value !== null && !(this.log && value <= 0))
        made.push(draw("circle", { class: `dot ${colour(run)}`, cx: this.x(xs[k]), cy: this.y(value), r: 2.6 }));
    }
    return made;
  }

  ticksOf(run, row, x0, x1) {
    const { bottom, rug } = this.box, xs = run.snapshots[this.view.axis];
    const y = bottom + 6 + row * rug, seen = new Set(), made = { plain: "", restart: "" };
    xs.forEach((x, k) => {
      if (x < x0 || x > x1) return;
      const restart = run.snapshots.value[k] === 1, pixel = Math.round(this.x(x));
      if (seen.has(pixel) && !restart) return;
      seen.add(pixel);
      if (restart) made.restart += `M${pixel} ${y}v${rug - 1}`;
      else made.plain += `M${pixel} ${y + rug * 0.4}v${rug * 0.6 - 1}`;
    });
    return [draw("path", { class: `snapshot ${colour(run)}`, d: made.plain }),
      draw("path", { class: `snapshot restart ${colour(run)}`, d: made.restart })];
  }

  /** The same in words and numbers, for those who do not see the lines. */
  describe(lines) {
    const head = ["Run", "First", "Last", "Least", "Greatest"];
    const rows = lines.map(({ run }) => {
      const values = run.curves[this.metric.key].value.filter(isNumber);
      const extremes = values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
      return [run.name, ...[values[0], values[values.length - 1], ...extremes].map(digits)];
    });
    this.table.replaceChildren(
      make("thead", {}, make("tr", {}, ...head.map((word, k) => make("th", { scope: "col", ...(k && { class: "number" }) }, word)))),
      make("tbody", {}, ...rows.map(([name, ...cells]) =>
        make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((text) => make("td", { class: "number" }, text))))));
    this.summary.textContent = rows.length
      ? rows.map(([name, first, last, low, high]) => `${name}: from ${first} to ${last}, between ${low} and ${high}`).join("; ")
      : "No run is shown.";
  }

  /** Each shown run's measured point that is nearest to x. */
  at(x) {
    const found = [];
    for (const { run, main, behind } of this.lines()) {
      const xs = main[this.view.axis];
      if (!xs.length || x > xs[xs.length - 1] + (xs[1] - xs[0] || 0) * 2) continue;
      const k = nearest(xs, x);
      if (main.value[k] !== null) found.push({ run, x: xs[k], value: main.value[k], smooth: behind !== null });
    }
    return found;
  }

  /** Draw the shared cursor; the points under it. */
  cursor() {
    this.marks.replaceChildren();
    const at = this.view.cursor, [x0, x1] = this.view.range();
    if (at === null || at < x0 || at > x1) return [];
    const { top, bottom } = this.box, x = this.x(at), points = this.at(at);
    this.marks.append(draw("line", { class: "cursor", x1: x, x2: x, y1: top, y2: bottom }));
    for (const point of points)
      if (point.x >= x0 && point.x <= x1 && !(this.log && point.value <= 0))
        this.marks.append(draw("circle", { class: `dot ring ${colour(point.run)}`, cx: this.x(point.x), cy: this.y(point.value), r: 4.5 }));
    return points;
  }

  listen() {
    const pixel = (event) => {
      const inside = event.clientX - this.plot.getBoundingClientRect().left;
      return Math.min(this.box.right, Math.max(this.box.left, inside));
    };
    let start = null;
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) {
        start = pixel(event);
        this.plot.setPointerCapture(event.pointerId);
      }
    });
    this.plot.addEventListener("pointermove", (event) => {
      const now = pixel(event);
      this.view.point(this, this.unx(now), event);
      if (start !== null)
        this.marks.append(draw("rect", { class: "selection", x: Math.min(start, now), y: this.box.top,
          width: Math.abs(now - start), height: this.box.bottom - this.box.top }));
    });
    this.plot.addEventListener("pointerup", (event) => {
      const from = start, now = pixel(event);
      start = null;
      if (from !== null && Math.abs(now - from) > 5) this.view.zoomTo(...[this.unx(from), this.unx(now)].sort((a, b) => a - b));
    });
    this.plot.addEventListener("pointercancel", () => { start = null; });
    this.plot.addEventListener("pointerleave", () => this.view.point(null, null));
    this.plot.addEventListener("blur", () => this.view.point(null, null));
    this.plot.addEventListener("dblclick", () => this.view.zoomTo());
    this.plot.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const [x0, x1] = this.view.range(), stride = (x1 - x0) / (event.shiftKey ? 10 : 50);
    const now = this.view.cursor ?? x0;
    const moves = { ArrowLeft: now - stride, ArrowRight: now + stride, Home: x0, End: x1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.view.point(this, Math.min(x1, Math.max(x0, moves[event.key])), null);
    else if (event.key === "+" || event.key === "=") this.view.zoomBy(0.5);
    else if (event.key === "-") this.view.zoomBy(2);
    else if (event.key === "0" || event.key === "Escape") this.view.zoomTo();
    else return;
    event.preventDefault();
  }
}
