// The page of a job: its log, its numbers as charts, and its regions as they change.
import { refresher } from "./regions.js";
import { follow } from "./stream.js";
import { LogView } from "./log.js";

const TAIL = 2000;
const WAITING_GAP_MS = 2000;

const isWaiting = () => document.getElementById("summary").dataset.state === "PENDING";

export async function followJob(main) {
  if (isWaiting()) followLine(() => followLife(main));
  else await followLife(main);
}

// A job that waits says nothing itself: its place changes when other jobs do.
function followLine(then) {
  const refresh = refresher(WAITING_GAP_MS, () => {
    if (isWaiting()) return;
    stream.stop();
    then();
  });
  const stream = follow((lastId) => `/v1/jobs/stream?since=${encodeURIComponent(lastId || "0:0")}`, {
    job: refresh,
    reset: refresh,
  });
}

async function followLife(main) {
  const refresh = refresher(Number(main.dataset.gap));
  const log = new LogView(document.getElementById("log"));
  let charts = null;
  if (document.getElementById("live-charts")) {
    const { LiveCharts } = await import("./charts.js");
    charts = new LiveCharts(document.getElementById("live-charts"));
  }
  const position = (lastId) => (lastId ? `since=${encodeURIComponent(lastId)}` : `tail=${TAIL}`);
  const stream = follow((lastId) => `${main.dataset.stream}?${position(lastId)}`, {
    open: () => charts?.load(),
    log: ({ attempt, text }) => log.add(attempt, text),
    job: (job) => {
      charts?.add(job);
      refresh();
    },
    end: () => {
      log.end();
      stream.stop("ended");
      refresh();
    },
  });
}
