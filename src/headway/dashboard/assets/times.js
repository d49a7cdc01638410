// "3 min ago" beside the exact time, and running times that count on.
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

function ago(at) {
  const seconds = (at - Date.now()) / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size || unit === "second") {
      return relative.format(Math.round(seconds / size), unit);
    }
  }
}

function lasted(seconds) {
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (seconds < 60) return `${Math.max(0, seconds).toFixed(0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two((seconds % 3600) / 60)} min`;
}

export function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    time.title ||= `${at.toLocaleString()} (${time.textContent})`;
    time.textContent = ago(at);
  }
  for (const span of document.querySelectorAll("[data-since]")) {
    span.textContent = lasted((Date.now() - new Date(span.dataset.since)) / 1000);
  }
}
setInterval(tellTimes, 1000);
