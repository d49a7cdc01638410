// A stream of server-sent events that says in the page's corner whether it is connected.
const RETRY_MS = 1000;

// A stream that is refused does not say why. Who is not signed in any more is shown the form.
async function askWhetherSignedOut() {
  try {
    const answer = await fetch("/v1/me");
    if (answer.status === 401) location.reload();
  } catch {
    // The server is away; the stream tries again.
  }
}

// handlers: event name -> function(data, id). `addressAfter(lastId)` is asked for the address of
// every connection: EventSource itself gives up for good when a restarting server refuses.
export function follow(addressAfter, handlers) {
  const corner = document.getElementById("connection");
  let lastId = "";
  let source = null;
  let over = false;
  let retry = 0;

  const tell = (text, mood = "") => {
    corner.textContent = text;
    corner.className = `connection ${mood}`;
  };

  const open = () => {
    source = new EventSource(addressAfter(lastId));
    source.onopen = () => {
      tell("live");
      handlers.open?.();
    };
    source.onerror = () => {
      if (over) return;
      source.close();
      tell("connection lost, trying again", "lost");
      askWhetherSignedOut();
      retry = setTimeout(open, RETRY_MS);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      if (name === "open") continue;
      source.addEventListener(name, (event) => {
        if (event.lastEventId) lastId = event.lastEventId;
        handle(JSON.parse(event.data), event.lastEventId);
      });
    }
  };

  // A browser has six connections for a server: tabs that nobody looks at must not keep them all.
  // Coming back, a stream goes on where it stopped.
  const onVisibility = () => {
    if (document.hidden) {
      source?.close();
      clearTimeout(retry);
    } else open();
  };

  if (!document.hidden) open();
  document.addEventListener("visibilitychange", onVisibility);
  return {
    stop(text = "") {
      over = true;
      document.removeEventListener("visibilitychange", onVisibility);
      clearTimeout(retry);
      source?.close();
      tell(text, "over");
    },
  };
}
