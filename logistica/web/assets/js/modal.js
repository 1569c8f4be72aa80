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
