// throttle runs work soon after the first call and at most once per period,
// however many calls come between: a burst of events asks the API once.
export function throttle(period, work) {
  let timer = 0;
  let last = -Infinity;
  return () => {
    if (timer) return;
    const wait = Math.max(80, period - (performance.now() - last));
    timer = setTimeout(() => {
      timer = 0;
      last = performance.now();
      work();
    }, wait);
  };
}

// lagging runs work a few more times after the last call, ever later. What is
// read follows the event that told of it: by a moment, or, where a consumer was
// lost and its share waits for another, by many seconds.
export function lagging(work, waits = [1000, 2000, 4000, 8000, 15_000]) {
  let timer = 0;
  const after = (n) => {
    timer = n < waits.length ? setTimeout(() => { work(); after(n + 1); }, waits[n]) : 0;
  };
  const stop = () => clearTimeout(timer);
  return { stop, start: () => { stop(); after(0); } };
}

// onFrame calls draw once for all changes of a frame. A hidden page gets no
// frames; it is drawn by a slow timer so that it is right when shown.
export function onFrame(draw) {
  let asked = false;
  const run = () => {
    asked = false;
    draw();
  };
  return () => {
    if (asked) return;
    asked = true;
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  };
}
