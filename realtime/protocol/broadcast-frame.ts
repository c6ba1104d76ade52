import type { MessageEnvelope } from "./messages.ts";

/**
 * A broadcast. The bytes of the payload are passed on unchanged; `whole` is a message that has more or less than an event and a payload:
 * some clients put their data beside the event.
 */
export type BroadcastMessage = {
  readonly event: string;
  readonly encoding: "json" | "raw" | "whole";
  readonly payload: Buffer;
};

export type BroadcastPush = MessageEnvelope & { readonly broadcast: BroadcastMessage };

const PUSH_KIND = 3;
const BROADCAST_KIND = 4;
const PAYLOAD_ENCODINGS = ["raw", "json"] as const;
const PUSH_HEADER_BYTES = 7;
/** Lengths are one byte each. */
const MAX_NAME_BYTES = 255;

/**
 * `03 01 01 0e 02 00 01 | "6" "7" "realtime:room1" "hi" {"a":1}`; null for anything else. The caller validates a JSON payload: it is inserted
 * into messages unchanged, where half a value could end the message and start another.
 */
export function parseBroadcastPush(frame: Buffer): BroadcastPush | null {
  if (frame.length < PUSH_HEADER_BYTES || frame[0] !== PUSH_KIND) return null;
  const encoding = PAYLOAD_ENCODINGS[frame[6]!];
  let at = PUSH_HEADER_BYTES;
  const [joinRef, ref, topic, event] = [1, 2, 3, 4].map((place) => {
    const length = frame[place]!;
    at += length;
    return frame.toString("utf8", at - length, at);
  }) as [string, string, string, string];
  at += frame[5]!;
  if (at > frame.length || !encoding) return null;
  const broadcast = { event, encoding, payload: frame.subarray(at) };
  return { joinRef: joinRef || null, ref: ref || null, topic, event: "broadcast", broadcast };
}

/** `04 0e 02 00 01 | "realtime:room1" "hi" {"a":1}`; null for what the format cannot represent. */
export function encodeBroadcastFrame(topic: string, { event, encoding, payload }: BroadcastMessage): Buffer | null {
  if (encoding === "whole") return null;
  const names = [Buffer.from(topic), Buffer.from(event)] as const;
  if (names.some(({ length }) => length > MAX_NAME_BYTES)) return null;
  const header = Buffer.from([
    BROADCAST_KIND,
    names[0].length,
    names[1].length,
    0,
    PAYLOAD_ENCODINGS.indexOf(encoding),
  ]);
  return Buffer.concat([header, ...names, payload]);
}

/** The same as text, which cannot have raw bytes. */
export function encodeBroadcastPayload({ event, encoding, payload }: BroadcastMessage): string {
  if (encoding === "whole") return payload.toString("utf8");
  return `{"type":"broadcast","event":${JSON.stringify(event)},"payload":${payload.toString("utf8")}}`;
}
