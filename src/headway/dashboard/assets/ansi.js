// What programs print for a terminal, as elements: colours and weights (SGR), overwritten lines.
// Text only ever becomes text nodes, so a log can contain no markup.
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -\/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
const CUBE = [0, 95, 135, 175, 215, 255];
const MAX_LINE = 20000;

export class Ansi {
  constructor() {
    this.reset();
  }

  reset() {
    this.style = { fore: null, back: null, bold: false, faint: false, italic: false, under: false, struck: false, swap: false };
  }

  // The element of one line; the style goes on into the next, as in a terminal.
  line(text) {
    const element = document.createElement("span");
    element.className = "line";
    if (text.length > MAX_LINE) text = `${text.slice(0, MAX_LINE)} … (the rest is in the download)`;
    const visible = text.endsWith("\r") ? text.slice(0, -1) : text;
    let from = visible.lastIndexOf("\r") + 1;
    // Colours set before a carriage return still count.
    if (from) this.#read(visible.slice(0, from), null);
    this.#read(visible.slice(from), element);
    return element;
  }

  #read(text, element) {
    let at = 0;
    for (const found of text.matchAll(SEQUENCE)) {
      this.#put(text.slice(at, found.index), element);
      at = found.index + found[0].length;
      if (found[2] === "m") this.#select(found[1]);
    }
    this.#put(text.slice(at), element);
  }

  #put(text, element) {
    const shown = text.replace(CONTROLS, "");
    if (!shown || !element) return;
    const look = this.#look();
    if (!look) {
      element.append(shown);
      return;
    }
    const span = document.createElement("span");
    span.className = look.names;
    if (look.fore) span.style.color = look.fore;
    if (look.back) span.style.backgroundColor = look.back;
    span.textContent = shown;
    element.append(span);
  }

  #look() {
    const { bold, faint, italic, under, struck, swap } = this.style;
    const [fore, back] = swap ? [this.style.back ?? 0, this.style.fore ?? 7] : [this.style.fore, this.style.back];
    const names = [bold && "b", faint && "f", italic && "i", under && "u", struck && "s"].filter(Boolean);
    const look = {};
    if (typeof fore === "number") names.push(`c${fore}`);
    else look.fore = fore;
    if (typeof back === "number") names.push(`g${back % 8}`);
    else look.back = back;
    look.names = names.join(" ");
    return look.names || look.fore || look.back ? look : null;
  }

  #select(parameters) {
    const codes = parameters.split(/[;:]/).map(Number);
    const style = this.style;
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i];
      if (code === 0) this.reset();
      if (code === 0) return void (codes.length > i + 1 && this.#select(codes.slice(i + 1).join(";")));
      else if (code === 1) style.bold = true;
      else if (code === 2) style.faint = true;
      else if (code === 3) style.italic = true;
      else if (code === 4) style.under = true;
      else if (code === 7) style.swap = true;
      else if (code === 9) style.struck = true;
      else if (code === 22) style.bold = style.faint = false;
      else if (code === 23) style.italic = false;
      else if (code === 24) style.under = false;
      else if (code === 27) style.swap = false;
      else if (code === 29) style.struck = false;
      else if (code >= 30 && code <= 37) style.fore = code - 30;
      else if (code >= 90 && code <= 97) style.fore = code - 82;
      else if (code === 39) style.fore = null;
      else if (code >= 40 && code <= 47) style.back = code - 40;
      else if (code >= 100 && code <= 107) style.back = code - 100;
      else if (code === 49) style.back = null;
      else if (code === 38 || code === 48) {
        const [colour, used] = extended(codes.slice(i + 1));
        style[code === 38 ? "fore" : "back"] = colour;
        i += used;
      }
    }
  }
}

function extended([kind, ...rest]) {
  if (kind === 5) return [fromPalette(rest[0] ?? 0), 2];
  if (kind === 2) return [rgb(rest.slice(0, 3)), 4];
  return [null, 1];
}

function fromPalette(index) {
  if (index < 16) return index;
  if (index >= 232) return rgb(Array(3).fill(8 + (index - 232) * 10));
  const n = index - 16;
  return rgb([CUBE[Math.floor(n / 36)], CUBE[Math.floor(n / 6) % 6], CUBE[n % 6]]);
}

const rgb = (parts) => `rgb(${parts.map((part) => Math.min(255, Math.max(0, Number(part) || 0))).join(", ")})`;
