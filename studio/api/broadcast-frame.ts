/** A broadcast as the service sends it: https://supabase.com/docs/guides/realtime/protocol. */
type BroadcastFrame = { readonly topic: string; readonly event: string; readonly payload: unknown };

const BROADCAST_KIND = 4;
const HEADER_BYTES = 5;
const JSON_ENCODING = 1;

/** Decodes `04 0e 02 00 01 | "realtime:room1" "hi" {"a":1}`; null for another kind of frame. */
export function decodeBroadcastFrame(data: ArrayBuffer): BroadcastFrame | null {
  const bytes = new Uint8Array(data);
  const [kind, topicLength = 0, eventLength = 0, metadataLength = 0, encoding] = bytes;
  if (kind !== BROADCAST_KIND) return null;
  const text = (from: number, length?: number) =>
    new TextDecoder().decode(bytes.subarray(from, length === undefined ? undefined : from + length));
  const eventAt = HEADER_BYTES + topicLength;
  const payloadAt = eventAt + eventLength + metadataLength;
  return {
    topic: text(HEADER_BYTES, topicLength),
    event: text(eventAt, eventLength),
    payload: encoding === JSON_ENCODING ? JSON.parse(text(payloadAt)) : `${bytes.length - payloadAt} bytes`,
  };
}
