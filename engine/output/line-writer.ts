/** When this many characters wait to be written, further lines are dropped. */
const MAX_WAITING_CHARACTERS = 2 ** 20;
/** A socket that has become writable accepts this much without blocking. */
const MAX_BATCH_CHARACTERS = 2 ** 14;
const LINE_FEED = 0x0a;

export type LineTarget = {
  /** Never rejects. Resolves with the number of bytes that were written. */
  write(bytes: Buffer): Promise<number>;
  /** Writes what can be written without waiting; called when the process exits. */
  writeNow(text: string): void;
};

/**
 * Writes lines to standard output or standard error without blocking. Lines that cannot be written, because the disk is
 * full or the reader has stopped, are dropped and counted.
 */
export class LineWriter {
  /** Called when writing works again, with the number of lines that were dropped since the last call. */
  onRecovery: (dropped: number) => void = () => {};
  readonly #target: LineTarget;
  #lines: string[] = [];
  #waiting = 0;
  #isWriting = false;
  #hasPartialLine = false;
  #dropped = 0;
  #reported = 0;

  constructor(target: LineTarget) {
    this.#target = target;
    process.once("exit", () => this.#target.writeNow(this.#lines.join("")));
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING_CHARACTERS) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Batches the lines of one event-loop turn into one write.
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
    for (let length = 0; count < this.#lines.length && (count === 0 || length < MAX_BATCH_CHARACTERS); count++) {
      length += this.#lines[count]!.length;
    }
    return this.#lines.splice(0, count).join("");
  }

  async #writeBatch(text: string): Promise<void> {
    // A partial line was written before: start on a new line.
    const start = this.#hasPartialLine ? 1 : 0;
    const bytes = Buffer.from(this.#hasPartialLine ? `\n${text}` : text);
    const written = await this.#target.write(bytes);
    if (written < bytes.length) {
      if (written > 0) this.#hasPartialLine = bytes[written - 1] !== LINE_FEED;
      this.#dropped += countLines(bytes.subarray(Math.max(start, written)));
    } else {
      this.#hasPartialLine = false;
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
