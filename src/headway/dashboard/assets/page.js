// What every page does: keeps its regions up to date, tells times in the reader's terms, asks
// before it does something that cannot be undone. All HTML is made by the server.
import { followJobs } from "./jobs.js";
import { tellTimes } from "./times.js";

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target.matches(".filter select, .workspaces select")) event.target.form.requestSubmit();
});

// As in many tools: a slash puts the cursor into the search field.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && !typing && search) {
    event.preventDefault();
    search.focus();
  }
});

tellTimes();
document.documentElement.classList.add("with-script");
const main = document.getElementById("main");
if (document.getElementById("log")) {
  const { followJob } = await import("./job.js");
  followJob(main);
} else if (main.dataset.stream) {
  followJobs(main);
}
if (document.getElementById("new-run")) {
  const { showCommand } = await import("./new-run.js");
  showCommand(document.getElementById("new-run"));
}
document.documentElement.dataset.ready = "yes";
