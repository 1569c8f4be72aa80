// The event stream as the pages use it: events, the moments to read a snapshot,
// and one word for the connection.
import { subscribe } from "../push/sse.js";

// A browser opens at most six HTTP/1.1 connections to a host. A stream holds one
// for as long as it lives, so a tab left behind gives its own back after a
// while, and a page that is left gives it back at once: kept in the browser's
// back-forward cache, it would hold it for nobody.
const patience = 20_000; // ms hidden until the stream is given back

const words = { open: "live", waiting: "reconnecting" };

// listen keeps the stream open while the page is looked at and returns what ends
// it. onSnapshot is called when events were or may have been missed: at the
// first connection and after a reset. A stream that resumes repeats what was
// missed by itself.
export function listen({ url, headers, onEvent, onSnapshot, onConnection }) {
  let running = null;
  let lastEventId = "";
  let everOpen = false;

  const open = () => {
    if (running) return;
    const own = (running = new AbortController());
    const onState = (state) => {
      if (own.signal.aborted) return;
      everOpen ||= state === "open";
      const word = state === "connecting" ? (everOpen ? "reconnecting" : "connecting") : words[state];
      if (word) onConnection(word);
    };
    const take = ({ id, data }) => {
      lastEventId = id || lastEventId;
      if (data?.type) onEvent(data);
    };
    subscribe({ url, headers, lastEventId, signal: own.signal, onState, onReset: () => onSnapshot(), onEvent: take })
      .catch(() => onConnection("refused"));
  };
  const close = () => {
    running?.abort();
    running = null;
  };

  const unwatch = watch(open, close);
  open();
  return () => {
    unwatch();
    close();
  };
}

// watch calls close when the page is left or long hidden, and open when it is
// looked at again.
function watch(open, close) {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, patience);
    else open();
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", close);
  addEventListener("pageshow", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
    removeEventListener("pagehide", close);
    removeEventListener("pageshow", look);
  };
}
