import { ArrivalOrder } from "../engine/arrival-order.ts";
import { scanJson } from "../engine/json/scan.ts";
import { turnForLargeWork } from "../engine/large-work.ts";
import { runStepwise } from "../engine/stepwise.ts";
import { type BroadcastPush, parseBroadcastPush } from "./broadcast-frame.ts";
import { MOST_VALUES, refuseDepth, refuseLength, tooDeep, tooManyValues } from "./message-limits.ts";
import { DEEPEST, type Envelope, isJson, type Message, parseMessage, peekEnvelope, type Version } from "./protocol.ts";
import type { Refusal } from "./refusal.ts";

/** What a client has sent. */
export type Frame =
  | { readonly kind: "message"; readonly message: Message; readonly text: string }
  | { readonly kind: "broadcast"; readonly push: BroadcastPush }
  | { readonly kind: "unfit"; readonly envelope: Envelope; readonly refusal: Refusal };

/** Nearly all are shorter, and are read at once. */
const LARGE_BYTES = 16 * 1024;

/** Reads the frames of one client in the order in which they come. Those that cannot be read are passed over. */
export class FrameReader {
  readonly #version: Version;
  readonly #order = new ArrivalOrder();

  constructor(version: Version) {
    this.#version = version;
  }

  read(data: Buffer, isBinary: boolean, handle: (frame: Frame) => Promise<void>): Promise<void> {
    const isLarge = data.length > LARGE_BYTES;
    if (!isLarge && this.#order.isIdle) return handleRead(this.#read(data, isBinary), handle);
    const read = () => (isLarge ? this.#readLarge(data, isBinary) : this.#read(data, isBinary));
    return this.#order.read(read).then((frame) => handleRead(frame, handle));
  }

  #read(data: Buffer, isBinary: boolean): Frame | null {
    if (!isBinary) return this.#readText(data);
    const push = this.#readPush(data);
    const isFit = push && (push.broadcast.encoding !== "json" || isJson(push.broadcast.payload.toString("utf8")));
    return isFit ? { kind: "broadcast", push } : null;
  }

  #readLarge(data: Buffer, isBinary: boolean): Promise<Frame | null> {
    return isBinary ? this.#readLargePush(data) : this.#readLargeText(data);
  }

  #readText(data: Buffer): Frame | null {
    const text = data.toString("utf8");
    const message = parseMessage(text, this.#version);
    if (!message) return null;
    const refusal = refuseLength(message.event, data.length) ?? refuseDepth(message);
    return refusal ? { kind: "unfit", envelope: message, refusal } : { kind: "message", message, text };
  }

  /** What is too long is refused by what stands around its payload, and what has too many values before they are made. */
  async #readLargeText(data: Buffer): Promise<Frame | null> {
    const envelope = peekEnvelope(data, this.#version);
    const unfit = (refusal: Refusal | null): Frame | null =>
      envelope && refusal && { kind: "unfit", envelope, refusal };
    const tooLong = envelope && unfit(refuseLength(envelope.event, data.length));
    if (tooLong) return tooLong;
    // The payload lies within a list or an object.
    const scan = await runStepwise(scanJson(data, null, DEEPEST + 1));
    if (scan.kind === "invalid") return null;
    if (scan.kind === "too deep") return envelope && unfit(tooDeep(envelope.event));
    if (scan.values > MOST_VALUES) return envelope && unfit(tooManyValues(envelope.event));
    await turnForLargeWork(this);
    return this.#readText(data);
  }

  /** Its payload is passed on, so nothing is made of it. */
  async #readLargePush(data: Buffer): Promise<Frame | null> {
    const push = this.#readPush(data);
    if (!push) return null;
    if (push.broadcast.encoding === "json") {
      const { kind } = await runStepwise(scanJson(push.broadcast.payload));
      if (kind === "invalid" || kind === "too deep") return null;
    }
    return { kind: "broadcast", push };
  }

  #readPush(data: Buffer): BroadcastPush | null {
    return this.#version === "2.0.0" ? parseBroadcastPush(data) : null;
  }
}

function handleRead(frame: Frame | null, handle: (frame: Frame) => Promise<void>): Promise<void> {
  return frame ? handle(frame) : Promise.resolve();
}
