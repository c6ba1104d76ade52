import { SequentialReader } from "#http/sockets";
import { runStepwise, waitForLargeWorkSlot } from "#runtime/concurrency";
import { scanJson } from "#runtime/json";
import { checkDepth, checkLength, MAX_MESSAGE_VALUES, tooDeep, tooManyValues } from "./client-limits.ts";
import {
  type BroadcastPush,
  type ChannelError,
  type ClientMessage,
  isJson,
  MAX_MESSAGE_DEPTH,
  type MessageEnvelope,
  type ProtocolVersion,
  parseBroadcastPush,
  parseClientMessage,
  peekEnvelope,
} from "./messages.ts";

export type ClientFrame =
  | { readonly kind: "message"; readonly message: ClientMessage; readonly text: string }
  | { readonly kind: "broadcast"; readonly push: BroadcastPush }
  | { readonly kind: "unfit"; readonly envelope: MessageEnvelope; readonly refusal: ChannelError };

/** The size from which a frame is parsed in steps. Nearly all are shorter, and are parsed at once. */
const LARGE_BYTES = 16 * 1024;

/** Parses the frames of one client in order. Invalid ones are ignored. */
export class FrameReader {
  readonly #version: ProtocolVersion;
  readonly #largeWorkOwner: string;
  readonly #order = new SequentialReader();

  /** Makes a reader. Large frames of one owner wait for one another, on however many sockets they arrive. */
  constructor(version: ProtocolVersion, largeWorkOwner: string) {
    this.#version = version;
    this.#largeWorkOwner = largeWorkOwner;
  }

  read(data: Buffer, isBinary: boolean, handle: (frame: ClientFrame) => Promise<void>): Promise<void> {
    const isLarge = data.length > LARGE_BYTES;
    if (!isLarge && this.#order.isIdle) return handleRead(this.#read(data, isBinary), handle);
    const read = () => (isLarge ? this.#readLarge(data, isBinary) : this.#read(data, isBinary));
    return this.#order.read(read).then((frame) => handleRead(frame, handle));
  }

  #read(data: Buffer, isBinary: boolean): ClientFrame | null {
    if (!isBinary) return this.#readText(data);
    const push = this.#readPush(data);
    const isValid = push && (push.broadcast.encoding !== "json" || isJson(push.broadcast.payload.toString("utf8")));
    return isValid ? { kind: "broadcast", push } : null;
  }

  #readLarge(data: Buffer, isBinary: boolean): Promise<ClientFrame | null> {
    return isBinary ? this.#readLargePush(data) : this.#readLargeText(data);
  }

  #readText(data: Buffer): ClientFrame | null {
    const text = data.toString("utf8");
    const message = parseClientMessage(text, this.#version);
    if (!message) return null;
    const refusal = checkLength(message.event, data.length) ?? checkDepth(message);
    return refusal ? { kind: "unfit", envelope: message, refusal } : { kind: "message", message, text };
  }

  /** Reads a large frame. One that is too long is rejected by its envelope; one with too many values, before they are created. */
  async #readLargeText(data: Buffer): Promise<ClientFrame | null> {
    const envelope = peekEnvelope(data, this.#version);
    const rejected = (refusal: ChannelError | null): ClientFrame | null =>
      envelope && refusal && { kind: "unfit", envelope, refusal };
    const tooLong = envelope && rejected(checkLength(envelope.event, data.length));
    if (tooLong) return tooLong;
    // The payload is inside a list or an object.
    const scan = await runStepwise(scanJson(data, null, MAX_MESSAGE_DEPTH + 1));
    if (scan.kind === "invalid") return null;
    if (scan.kind === "too deep") return envelope && rejected(tooDeep(envelope.event));
    if (scan.values > MAX_MESSAGE_VALUES) return envelope && rejected(tooManyValues(envelope.event));
    await waitForLargeWorkSlot(this.#largeWorkOwner);
    return this.#readText(data);
  }

  /** Reads a large push, whose payload is passed on unparsed. */
  async #readLargePush(data: Buffer): Promise<ClientFrame | null> {
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

function handleRead(frame: ClientFrame | null, handle: (frame: ClientFrame) => Promise<void>): Promise<void> {
  return frame ? handle(frame) : Promise.resolve();
}
