// The log of a job: follows, colours, searches, and holds a bounded number of lines.
import { Ansi } from "./ansi.js";

const MAX_LINES = 10000;
const BLOCK_LINES = 200;

export class LogView {
  constructor(frame) {
    this.frame = frame;
    this.lines = frame.querySelector(".log-lines");
    this.plain = this.lines.textContent;
    this.started = false;
    this.ansi = new Ansi();
    this.attempt = 0;
    this.rest = "";
    this.count = 0;
    this.waiting = [];
    this.following = true;
    this.hits = [];
    this.hit = -1;
    this.#tools();
  }

  // A piece of what an attempt printed.
  add(attempt, text) {
    if (!this.started) this.#start();
    if (attempt !== this.attempt) this.#attempt(attempt);
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    this.waiting.push(...lines);
    // A log that pours in faster than it can be shown must not pile up here.
    if (this.waiting.length > MAX_LINES) this.waiting.splice(0, this.waiting.length - MAX_LINES);
    this.scheduled ??= requestAnimationFrame(() => this.#show());
  }

  end() {
    if (this.rest) this.add(this.attempt, "\n");
  }

  #start() {
    this.started = true;
    this.lines.replaceChildren();
  }

  #attempt(attempt) {
    this.#flush();
    if (this.attempt || attempt > 1) {
      const mark = document.createElement("span");
      mark.className = "log-mark";
      mark.textContent = `attempt ${attempt}`;
      this.lines.append(mark);
    }
    this.attempt = attempt;
    this.ansi.reset();
    this.block = null;
  }

  #flush() {
    if (this.rest) this.waiting.push(this.rest);
    this.rest = "";
    if (this.waiting.length) this.#show();
  }

  #show() {
    this.scheduled = undefined;
    const lines = this.waiting;
    this.waiting = [];
    for (const text of lines) {
      if (!this.block || this.block.childElementCount >= BLOCK_LINES) {
        this.block = document.createElement("div");
        this.block.className = "log-block";
        this.lines.append(this.block);
      }
      const line = this.ansi.line(text);
      this.#mark(line);
      this.block.append(line);
    }
    this.count += lines.length;
    this.#forget();
    this.#tell();
    this.#size();
    if (this.following) this.#toEnd();
  }

  #toEnd() {
    this.frame.scrollTop = this.frame.scrollHeight;
    // Blocks that were not laid out yet have an estimated height: look again once they are.
    requestAnimationFrame(() => {
      if (this.following) this.frame.scrollTop = this.frame.scrollHeight;
    });
  }

  #size() {
    this.frame.classList.toggle("short", this.count < 20);
  }

  #forget() {
    while (this.count > MAX_LINES) {
      const first = this.lines.querySelector(".log-block");
      this.count -= first.childElementCount;
      this.hits = this.hits.filter((line) => line.parentElement !== first);
      first.remove();
      if (!this.cut) {
        this.cut = document.createElement("span");
        this.cut.className = "log-mark";
        this.cut.textContent = "earlier lines are in the download";
        this.lines.prepend(this.cut);
      }
    }
  }

  #tools() {
    this.search = document.getElementById("log-search");
    this.found = document.getElementById("log-found");
    const follow = document.getElementById("log-follow");
    const wrap = document.getElementById("log-wrap");
    const setFollowing = (on) => {
      this.following = on;
      follow.setAttribute("aria-pressed", on);
      if (on) this.#toEnd();
    };
    follow.addEventListener("click", () => setFollowing(!this.following));
    wrap.addEventListener("click", () => {
      const unwrapped = this.frame.classList.toggle("unwrapped");
      wrap.setAttribute("aria-pressed", !unwrapped);
    });
    // Whoever scrolls up wants to read; whoever returns to the end wants to follow. That lines
    // come or go is no scrolling, though it fires the same event.
    let top = 0;
    this.frame.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.frame;
      const up = scrollTop < top - 2 && scrollHeight >= this.height;
      top = scrollTop;
      this.height = scrollHeight;
      if (this.following && up) setFollowing(false);
      else if (!this.following && scrollHeight - scrollTop - clientHeight < 8) setFollowing(true);
    });
    this.search.addEventListener("input", () => this.#find());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !this.hits.length) return;
      event.preventDefault();
      const step = event.shiftKey ? -1 : 1;
      this.#go((this.hit + step + this.hits.length) % this.hits.length);
      setFollowing(false);
    });
  }

  #find() {
    for (const line of this.hits) line.classList.remove("hit", "now");
    this.hits = [];
    this.hit = -1;
    for (const line of this.lines.querySelectorAll(".line")) this.#mark(line);
    this.#tell();
  }

  #mark(line) {
    const wanted = this.search.value.toLowerCase();
    if (wanted && line.textContent.toLowerCase().includes(wanted)) {
      line.classList.add("hit");
      this.hits.push(line);
    }
  }

  #go(index) {
    this.hits[this.hit]?.classList.remove("now");
    this.hit = index;
    this.hits[index].classList.add("now");
    this.hits[index].scrollIntoView({ block: "center" });
    this.#tell();
  }

  #tell() {
    if (!this.search.value) this.found.textContent = "";
    else if (!this.hits.length) this.found.textContent = "no line has it";
    else if (this.hit < 0) this.found.textContent = `${this.hits.length} lines; Enter goes to the next`;
    else this.found.textContent = `${this.hit + 1} of ${this.hits.length}`;
  }
}
