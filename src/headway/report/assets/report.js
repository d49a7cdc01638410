// Tooltips and a crosshair for the charts. Everything else works without a script.
"use strict";
{
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  let crosshair = null;

  const hide = () => {
    tip.hidden = true;
    crosshair?.remove();
    crosshair = null;
  };

  const show = (mark, event) => {
    hide();
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${window.scrollX + Math.max(8, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${window.scrollY + event.clientY + 16}px`;
    const svg = mark.ownerSVGElement;
    crosshair = document.createElementNS(svg.namespaceURI, "line");
    crosshair.setAttribute("class", "crosshair");
    for (const end of ["x1", "x2"]) crosshair.setAttribute(end, mark.dataset.x);
    crosshair.setAttribute("y1", 10);
    crosshair.setAttribute("y2", svg.viewBox.baseVal.height - 36);
    svg.append(crosshair);
  };

  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    if (mark) show(mark, event);
    else hide();
  });

  // A link to a closed stage opens it; a printed report shows all of them.
  const openTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", openTarget);
  openTarget();
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  document.documentElement.dataset.ready = "yes";
}
