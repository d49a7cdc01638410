// Charts of what a job tells of its progress while it runs. They look like the report's, and
// carry the same tooltips (report.js). What to draw is said by the page in data-charts; a job that
// the page knows nothing about gets one chart for each of its numbers.
const WIDTH = 420, HEIGHT = 232, LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 36;
const MAX_POINTS = 2000;
const MAX_CHARTS = 12;
const MAX_HITS = 60;
const SVG = "http://www.w3.org/2000/svg";

export class LiveCharts {
  constructor(place) {
    this.place = place;
    this.points = [];
    this.charts = JSON.parse(place.dataset.charts).map((spec) => new LiveChart(spec, place));
    this.general = this.charts.length === 0;
    this.attempt = 0;
  }

  // What the attempt told before this page was opened, or while nobody looked at it.
  async load() {
    try {
      const answer = await fetch(this.place.dataset.history);
      if (!answer.ok) return;
      const { attempt, points } = await answer.json();
      if (this.attempt > attempt) return;
      this.attempt = attempt;
      const earlier = points.map(({ at_s, numbers }) => ({ at: at_s, numbers }));
      this.points = earlier;
      this.#thin();
      this.#draw();
    } catch {
      // Without its past a chart begins now.
    }
  }

  add(job) {
    const numbers = job.progress?.numbers;
    if (!numbers || job.state !== "RUNNING" || !Object.keys(numbers).length) return;
    if (job.attempt !== this.attempt) {
      this.points = this.attempt ? [] : this.points;
      this.attempt = job.attempt;
    }
    this.points.push({ at: Date.now() / 1000, numbers });
    this.#thin();
    this.scheduled ??= requestAnimationFrame(() => this.#draw());
  }

  // An endless job has an endless chart, of ever coarser points.
  #thin() {
    if (this.points.length > MAX_POINTS) this.points = this.points.filter((_, n) => n % 2 === 0);
  }

  #draw() {
    this.scheduled = undefined;
    if (this.general) this.#chartsForNumbers();
    this.place.hidden = this.points.length === 0;
    for (const chart of this.charts) chart.draw(this.points);
  }

  #chartsForNumbers() {
    const drawn = new Set(this.charts.map((chart) => chart.spec.title));
    for (const key of Object.keys(this.points.at(-1)?.numbers ?? {})) {
      if (drawn.has(key) || this.charts.length >= MAX_CHARTS) continue;
      const spec = { title: key, unit: "", lines: [{ label: key, key, tone: 1 }] };
      this.charts.push(new LiveChart(spec, this.place));
    }
  }
}

class LiveChart {
  constructor(spec, place) {
    this.spec = spec;
    this.factor = spec.factor ?? 1;
    this.figure = node("figure", { class: "chart" });
    const caption = node("figcaption");
    const title = node("strong");
    title.textContent = spec.title;
    const unit = node("span", { class: "unit" });
    unit.textContent = spec.unit;
    caption.append(title, unit, this.#legend());
    this.svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": spec.title });
    this.figure.append(caption, this.svg);
    place.append(this.figure);
  }

  #legend() {
    const legend = node("span", { class: "legend" });
    for (const line of this.spec.lines) {
      const item = node("span");
      const name = document.createElement("span");
      name.textContent = line.label;
      line.now = node("b");
      item.append(node("i", { class: `swatch t${line.tone}${line.dashed ? " dashed" : ""}` }), name, line.now);
      legend.append(item);
    }
    return legend;
  }

  draw(points) {
    const known = points.filter(({ numbers }) => this.spec.lines.some(({ key }) => key in numbers));
    const highest = Math.max(0, ...known.flatMap(({ numbers }) => this.spec.lines.map(({ key }) => (numbers[key] ?? 0) * this.factor)));
    const start = points[0]?.at ?? 0;
    const span = Math.max(1, (points.at(-1)?.at ?? 1) - start);
    const step = highest > 0 ? niceStep(highest / 5) : 0.2;
    const top = highest > 0 ? Math.ceil((highest * 1.02) / step) * step : 1;
    const x = (at) => LEFT + ((at - start) / span) * (WIDTH - RIGHT - LEFT);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
    const parts = [...this.#axes(span, step, top, y), ...stageMarks(points, x)];
    for (const line of this.spec.lines) {
      parts.push(svg("path", { d: this.#path(line, points, x, y), class: `line t${line.tone}${line.dashed ? " dashed" : ""}` }));
      const last = points.at(-1)?.numbers[line.key];
      line.now.textContent = last === undefined ? "" : tick(last * this.factor);
    }
    parts.push(...this.#hits(known, start, x));
    this.svg.replaceChildren(...parts);
  }

  #path(line, points, x, y) {
    let path = "", down = false, stage;
    for (const { at, numbers } of points) {
      const value = numbers[line.key];
      // What is counted in a stage begins anew in the next: no line leads from one to the other.
      if (numbers.stage !== stage) down = false;
      stage = numbers.stage;
      if (value === undefined) {
        down = false;
        continue;
      }
      path += `${down ? "L" : "M"}${x(at).toFixed(1)} ${y(value * this.factor).toFixed(1)}`;
      down = true;
    }
    return path;
  }

  #axes(span, step, top, y) {
    const parts = [];
    for (let value = 0; value <= top + step / 2; value += step) {
      parts.push(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }));
      parts.push(text(tick(value), LEFT - 6, y(value) + 3.5, "tick end"));
    }
    const across = niceStep(span / 6);
    for (let at = 0; at <= span; at += across) {
      parts.push(text(tick(at), LEFT + (at / span) * (WIDTH - RIGHT - LEFT), HEIGHT - BOTTOM + 15, "tick middle"));
    }
    const base = HEIGHT - BOTTOM;
    parts.push(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: base, y2: base, class: "axis" }));
    parts.push(text("s", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "label middle"));
    return parts;
  }

  #hits(points, start, x) {
    const shown = points.filter((_, n) => n % Math.ceil(points.length / MAX_HITS) === 0);
    return shown.map(({ at, numbers }, n) => {
      const left = n ? (x(shown[n - 1].at) + x(at)) / 2 : LEFT;
      const right = n + 1 < shown.length ? (x(at) + x(shown[n + 1].at)) / 2 : WIDTH - RIGHT;
      const values = this.spec.lines
        .filter(({ key }) => key in numbers)
        .map(({ label, key }) => `${label}: ${tick(numbers[key] * this.factor)}`);
      return svg("rect", {
        x: left, width: Math.max(0, right - left), y: TOP, height: HEIGHT - BOTTOM - TOP, class: "hit",
        "data-x": x(at), "data-tip": [`${tick(at - start)} s`, ...values].join("\n"),
      });
    });
  }
}

// A thin line where a stage of a run begins.
function stageMarks(points, x) {
  const marks = [];
  for (let n = 1; n < points.length; n++) {
    const stage = points[n].numbers.stage;
    if (stage === undefined || stage === points[n - 1].numbers.stage) continue;
    marks.push(svg("line", { x1: x(points[n].at), x2: x(points[n].at), y1: TOP, y2: HEIGHT - BOTTOM, class: "marker" }));
  }
  return marks;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * (1 - 1e-9));
}

const tick = (value) => value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 6 : 3 });

function node(name, attributes = {}) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function text(content, x, y, kind) {
  const element = svg("text", { x, y, class: kind });
  element.textContent = content;
  return element;
}
