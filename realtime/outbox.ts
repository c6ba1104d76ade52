import type { Duplex } from "node:stream";
import type { SharedBytes } from "../engine/memory/shared-bytes.ts";
import type { Tally } from "./statistics.ts";

/** Of what waits for one client, when more comes. The frames of a room or a table are shared, so many slow clients cost little more than one. */
const MOST_BYTES = 4 * 2 ** 20;
/** From here on whoever sends much had better wait a little. */
const FULL_BYTES = 512 * 2 ** 10;

export type OutboxOptions = {
  readonly socket: Duplex;
  readonly tally: Tally;
  /** Frames that the clients of this process have not read yet. */
  readonly unsentFrames: SharedBytes<Buffer>;
  /** The client reads too slowly. */
  readonly overflow: () => void;
  /** It does not read, and the clients of the process together have left too much unread. */
  readonly shortage: () => void;
};

/** What is on its way to one client: all that happens at once travels in one write, and what is too much ends it. */
export class Outbox {
  readonly #socket: Duplex;
  readonly #tally: Tally;
  readonly #unsentFrames: OutboxOptions["unsentFrames"];
  readonly #overflow: () => void;
  readonly #shortage: () => void;
  #frames: Buffer[] = [];
  /** What the socket could not pass on at once, in order. Empty as a rule: then nothing is counted. */
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #bytes = 0;
  #bytesUnpaced = 0;
  #isOver = false;

  constructor({ socket, tally, unsentFrames, overflow, shortage }: OutboxOptions) {
    this.#socket = socket;
    this.#tally = tally;
    this.#unsentFrames = unsentFrames;
    this.#overflow = overflow;
    this.#shortage = shortage;
    socket.on("drain", () => this.#releaseSent());
    socket.once("close", () => this.#release(this.#unsent.length));
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
    if (this.#unsent.length > 0) this.#releaseSent();
    this.#socket.cork();
    for (const frame of frames) this.#socket.write(frame);
    this.#socket.uncork();
    if (this.#socket.writableNeedDrain) this.#holdUnsent(frames);
  }

  #holdUnsent(frames: readonly Buffer[]): void {
    let isShort = false;
    for (const frame of frames) {
      isShort ||= this.#unsentFrames.shortageOf(frame, frame.length) !== null;
      this.#unsentFrames.hold(frame, frame.length);
      this.#unsent.push(frame);
      this.#unsentBytes += frame.length;
    }
    if (isShort) this.#shortage();
  }

  /** The socket passes them on in order, and says how much is left. */
  #releaseSent(): void {
    let count = 0;
    let left = this.#unsentBytes;
    while (count < this.#unsent.length && left - this.#unsent[count]!.length >= this.#socket.writableLength) {
      left -= this.#unsent[count++]!.length;
    }
    this.#release(count);
  }

  #release(count: number): void {
    for (const frame of this.#unsent.splice(0, count)) {
      this.#unsentFrames.release(frame, frame.length);
      this.#unsentBytes -= frame.length;
    }
  }

  /** Nothing more is taken; what was, still goes. */
  end(): void {
    this.flush();
    this.#isOver = true;
  }
}
