// The form for a new run: the server says, while one types, what the form comes to.
const PAUSE_MS = 150;

export function showCommand(form) {
  const profile = form.elements.profile;
  document.getElementById("check").hidden = true; // there for readers without this script

  const showFields = () => {
    for (const field of form.querySelectorAll("[data-profiles]")) {
      field.hidden = !field.dataset.profiles.split(" ").includes(profile.value);
    }
  };

  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    await new Promise((done) => setTimeout(done, PAUSE_MS));
    if (mine !== asked) return;
    const query = new URLSearchParams(new FormData(form));
    const answer = await fetch(`/runs/new?${query}`);
    // Answers may overtake each other; only the last question counts.
    if (!answer.ok || mine !== asked) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const plan = document.adoptNode(fresh.getElementById("plan"));
    plan.append(copyButton());
    document.getElementById("plan").replaceWith(plan);
    // The address keeps the form: a reload or a link brings it back.
    history.replaceState(null, "", `/runs/new?${filled(query)}`);
  };

  form.addEventListener("input", () => {
    showFields();
    ask();
  });
  showFields();
  document.getElementById("plan").append(copyButton());
}

function filled(query) {
  return new URLSearchParams([...query].filter(([, value]) => value));
}

function copyButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button small copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    button.textContent = "Copied";
  });
  return button;
}
