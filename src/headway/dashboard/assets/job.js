// The page of a job: its log, its numbers as charts, and its regions as they change.
import { refresher } from "./regions.js";
import { follow } from "./stream.js";
import { LogView } from "./log.js";

const TAIL = 2000;

export async function followJob(main) {
  const refresh = refresher(Number(main.dataset.gap));
  const log = new LogView(document.getElementById("log"));
  let charts = null;
  if (document.getElementById("live-charts")) {
    const { LiveCharts } = await import("./charts.js");
    charts = new LiveCharts(document.getElementById("live-charts"));
    charts.load();
  }
  let begun = false;
  const position = (lastId) => (lastId ? `since=${encodeURIComponent(lastId)}` : `tail=${TAIL}`);
  const stream = follow((lastId) => `${main.dataset.stream}?${position(lastId)}`, {
    log: ({ attempt, text }) => log.add(attempt, text),
    job: (job) => {
      charts?.add(job);
      // The page was rendered a moment ago: the first word of the stream is nothing new.
      if (begun || job.state !== document.getElementById("summary").dataset.state) refresh();
      begun = true;
    },
    end: () => {
      log.end();
      stream.stop("ended");
      refresh();
    },
  });
}
