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
