import type { FunctionLine } from "#http/observability";

const MAX_LINES = 500;
const MAX_TEXT = 2_000;

/** The last lines of this process, for Studio. */
export class FunctionLog {
  readonly #lines: FunctionLine[] = [];

  add(line: Omit<FunctionLine, "at">): void {
    this.#lines.push({ at: new Date().toISOString(), ...line, text: line.text.slice(0, MAX_TEXT) });
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }

  list(): readonly FunctionLine[] {
    return this.#lines;
  }
}
