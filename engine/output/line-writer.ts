/** Lines that wait to be written, in characters; further ones are dropped. */
const MOST_WAITING = 2 ** 20;
/** What is written at once, in characters: a socket that has become writable takes so much without blocking. */
const MOST_AT_ONCE = 2 ** 14;
const LINE_FEED = 0x0a;

export type Target = {
  /** Never rejects. Writes as many of the bytes as are taken, and resolves with their number. */
  write(bytes: Buffer): Promise<number>;
  /** Writes what can be written without waiting, as the process ends. */
  writeNow(text: string): void;
};

/**
 * Standard output or standard error, for lines that nobody may have to wait for: those that are not taken, because the
 * disk is full, the reader has stopped or has gone, are dropped and counted.
 */
export class LineWriter {
  /** Called when lines are written again, with the number of those that were dropped since the last time. */
  onRecovery: (dropped: number) => void = () => {};
  readonly #target: Target;
  #lines: string[] = [];
  #waiting = 0;
  #isWriting = false;
  #isCut = false;
  #dropped = 0;
  #reported = 0;

  constructor(target: Target) {
    this.#target = target;
    process.once("exit", () => this.#target.writeNow(this.#lines.join("")));
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#waiting + line.length > MOST_WAITING) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Lines of the same turn of the event loop share one write.
    setImmediate(() => void this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const text = this.#takeBatch();
      await this.#writeBatch(text);
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }

  #takeBatch(): string {
    let count = 0;
    for (let length = 0; count < this.#lines.length && (count === 0 || length < MOST_AT_ONCE); count++) {
      length += this.#lines[count]!.length;
    }
    return this.#lines.splice(0, count).join("");
  }

  async #writeBatch(text: string): Promise<void> {
    // Without a line feed in front the next line would continue the one that was cut.
    const start = this.#isCut ? 1 : 0;
    const bytes = Buffer.from(this.#isCut ? `\n${text}` : text);
    const written = await this.#target.write(bytes);
    if (written < bytes.length) {
      if (written > 0) this.#isCut = bytes[written - 1] !== LINE_FEED;
      this.#dropped += countLines(bytes.subarray(Math.max(start, written)));
    } else {
      this.#isCut = false;
      if (this.#dropped === this.#reported) return;
      const dropped = this.#dropped - this.#reported;
      this.#reported = this.#dropped;
      this.onRecovery(dropped);
    }
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === LINE_FEED) lines++;
  return lines;
}
