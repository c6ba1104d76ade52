import { styleText } from "node:util";

const SHOWN_AFTER_MS = 1_000;
const FRAME_MS = 100;
const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
/** Clears the line of the terminal, and returns to its beginning. */
const CLEAR = "\r\u001b[2K";

type Terminal = Pick<NodeJS.WriteStream, "isTTY" | "write">;

/** Shows a moving line with the seconds while the work takes longer than one, on a terminal only. */
export async function withProgress<Result>(
  text: string,
  work: () => Promise<Result>,
  terminal: Terminal = process.stderr,
): Promise<Result> {
  if (!terminal.isTTY) return work();
  const startedAt = performance.now();
  let frame = 0;
  const timer = setInterval(() => {
    const elapsed = performance.now() - startedAt;
    if (elapsed < SHOWN_AFTER_MS) return;
    const sign = styleText("cyan", FRAMES[frame++ % FRAMES.length]!);
    terminal.write(`${CLEAR}${sign} ${text} … ${Math.floor(elapsed / 1_000)} s`);
  }, FRAME_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (frame > 0) terminal.write(CLEAR);
  }
}
