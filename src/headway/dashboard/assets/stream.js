// A stream of server-sent events that says in the page's corner whether it is connected.
const RETRY_MS = 1000;

// handlers: event name -> function(data, id). `addressAfter(lastId)` is asked for the address of
// every connection: EventSource itself gives up for good when a restarting server refuses.
export function follow(addressAfter, handlers) {
  const corner = document.getElementById("connection");
  let lastId = "";
  let source = null;
  let over = false;

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
      setTimeout(open, RETRY_MS);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      if (name === "open") continue;
      source.addEventListener(name, (event) => {
        if (event.lastEventId) lastId = event.lastEventId;
        handle(JSON.parse(event.data), event.lastEventId);
      });
    }
  };

  open();
  return {
    stop(text = "") {
      over = true;
      source.close();
      tell(text, "over");
    },
  };
}
