import type { Duplex } from "node:stream";
import type { Tally } from "./statistics.ts";

/** Of what waits for one client, when more comes. The frames of a room or a table are shared, so many slow clients cost little more than one. */
const MOST_BYTES = 4 * 2 ** 20;
/** From here on whoever sends much had better wait a little. */
const FULL_BYTES = 512 * 2 ** 10;

/** What is on its way to one client: all that happens at once travels in one write, and what is too much ends it. */
export class Outbox {
  readonly #socket: Duplex;
  readonly #tally: Tally;
  readonly #overflow: () => void;
  #frames: Buffer[] = [];
  #bytes = 0;
  #bytesUnpaced = 0;
  #isOver = false;

  constructor(socket: Duplex, tally: Tally, overflow: () => void) {
    this.#socket = socket;
    this.#tally = tally;
    this.#overflow = overflow;
  }

  get isFull(): boolean {
    return this.#held > FULL_BYTES;
  }

  /** Full of what was sent since it was waited for: who takes a little at a time is not waited for each time. */
  get isDue(): boolean {
    return this.#bytesUnpaced > FULL_BYTES && this.isFull;
  }

  /** It is being waited for. */
  paced(): void {
    this.#bytesUnpaced = 0;
  }

  /** What the client has not taken yet. */
  get #held(): number {
    return this.#bytes + this.#socket.writableLength;
  }

  send(frame: Buffer): void {
    if (this.#isOver) return;
    // One that is large by itself is no sign of slow reading.
    if (this.#held > MOST_BYTES) {
      this.#tally.overwhelmed++;
      this.#overflow();
      return;
    }
    if (this.#frames.length === 0) setImmediate(() => this.flush());
    this.#frames.push(frame);
    this.#bytes += frame.length;
    this.#bytesUnpaced += frame.length;
    this.#tally.messagesOut++;
    this.#tally.bytesOut += frame.length;
  }

  /** Anything that goes another way, such as the closing frame, is to be behind what was sent before. */
  flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    if (frames.length === 0 || this.#socket.destroyed) return;
    this.#socket.cork();
    for (const frame of frames) this.#socket.write(frame);
    this.#socket.uncork();
  }

  /** Nothing more is taken; what was, still goes. */
  end(): void {
    this.flush();
    this.#isOver = true;
  }
}
