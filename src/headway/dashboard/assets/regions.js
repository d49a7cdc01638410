// Regions are parts of a page that the server renders and that change while one looks at it.
import { tellTimes } from "./times.js";

// Replaces what differs, row by row in tables, so that focus and selection elsewhere stay.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const rows = old.querySelector(":scope > table.jobs > tbody");
  const freshRows = fresh.querySelector(":scope > table.jobs > tbody");
  if (!rows || !freshRows) {
    replace(old, fresh);
    return;
  }
  let place = rows.firstElementChild;
  for (const row of [...freshRows.children]) {
    const known = document.getElementById(row.id);
    if (!known) {
      rows.insertBefore(row, place);
      continue;
    }
    if (known === place) place = place.nextElementSibling;
    else rows.insertBefore(known, place);
    if (known.dataset.source !== row.outerHTML) {
      const source = row.outerHTML;
      replace(known, row);
      row.dataset.source = source;
    }
  }
  while (place) {
    const next = place.nextElementSibling;
    place.remove();
    place = next;
  }
  const pages = old.querySelector(":scope > .pages");
  const freshPages = fresh.querySelector(":scope > .pages");
  pages?.remove();
  if (freshPages) old.append(freshPages);
}

function replace(old, fresh) {
  const focused = document.activeElement;
  const path = old.contains(focused) ? address(focused) : null;
  const open = [...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent);
  const scrolled = [...old.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
  for (const summary of fresh.querySelectorAll("details > summary")) {
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  }
  old.replaceWith(fresh);
  [...fresh.querySelectorAll(".scroll, pre")].forEach((each, index) => {
    if (scrolled[index]) [each.scrollLeft, each.scrollTop] = scrolled[index];
  });
  if (path) fresh.querySelector(path)?.focus();
}

// Where an element would be found again in a region that was rendered anew.
function address(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const link = element.getAttribute("href");
  if (link) return `[href="${CSS.escape(link)}"]`;
  return element.tagName.toLowerCase();
}

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
export function refresher(gapMs) {
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
