// The list of jobs: whenever a job changed, the list is asked for again.
import { refresher } from "./regions.js";
import { follow } from "./stream.js";

export function followJobs(main) {
  const refresh = refresher(Number(main.dataset.gap));
  const start = main.dataset.position;
  follow((lastId) => `${main.dataset.stream}?since=${encodeURIComponent(lastId || start)}`, {
    job: refresh,
    reset: refresh,
  });
}
