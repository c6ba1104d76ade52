const SLICES = 20;

/**
 * Starts a timer that excludes the time in which the event loop was blocked: an answer that arrived meanwhile is read before
 * the timer ends. The returned function stops it.
 */
export function startResponsiveTimer(milliseconds: number, end: () => void): () => void {
  let left = SLICES;
  const pass = () => {
    left--;
    if (left === 0) end();
    else timer.refresh();
  };
  const timer = setTimeout(pass, milliseconds / SLICES);
  return () => clearTimeout(timer);
}
