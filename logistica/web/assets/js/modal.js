// A dialog that holds the focus while it is there and gives it back to where it
// came from: only a dialog that was closed does, one taken off the page does not.
import { useLayoutEffect, useRef } from "./lib.js";

export function useModal() {
  const dialog = useRef(null);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => shown.close();
  }, []);
  return dialog;
}

// useOnce lets one answer through: a dialog that was answered is closed when it
// is taken off the page, and says so, when the next one may be open already.
export function useOnce(answer) {
  const given = useRef(false);
  return (...what) => {
    if (given.current) return;
    given.current = true;
    answer(...what);
  };
}
