// Regions are parts of a page that the server renders and that change while one looks at it.
import { tellTimes } from "./times.js";

// Changes `old` into `fresh`, leaving alone whatever is the same: a button that is being pressed,
// a field with the focus and an opened part stay the elements that they are.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  copyAttributes(old, fresh);
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const known = child.id ? childWithId(old, child.id) : place;
    if (known && isSameKind(known, child)) {
      if (known === place) place = place.nextSibling;
      else old.insertBefore(known, place);
      morph(known, child);
    } else {
      old.insertBefore(child, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function copyAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What the reader opened, and the exact time that a script put there, stay.
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "title") old.removeAttribute(name);
  }
}

const childWithId = (parent, id) => [...parent.children].find((child) => child.id === id);

const isSameKind = (one, other) => one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");

// Fetches this page and takes over its regions.
async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-region]")) {
    const region = fresh.getElementById(old.id);
    if (region) morph(old, document.adoptNode(region));
  }
  tellTimes();
}

// Returns a function that asks for a refresh; several at once make one, never two at a time.
// `after` is called after each.
export function refresher(gapMs, after = () => {}) {
  let running = false;
  let wanted = false;
  let last = 0;
  const run = async () => {
    if (running) return;
    running = true;
    while (wanted) {
      await new Promise((done) => setTimeout(done, Math.max(0, last + gapMs - performance.now())));
      wanted = false;
      last = performance.now();
      try {
        await refresh();
        after();
      } catch {
        // The stream will tell when the server is back.
      }
    }
    running = false;
  };
  return () => {
    wanted = true;
    run();
  };
}
