import type { ThreadOrder, ThreadReport } from "./messages.ts";

/** Returns the memory that is handed over with a message, and not copied. */
export function transferListOf(message: ThreadOrder | ThreadReport): ArrayBuffer[] {
  if (message.type === "piece") return message.piece ? [message.piece.buffer as ArrayBuffer] : [];
  if (message.type === "message") return typeof message.data === "string" ? [] : [message.data.buffer as ArrayBuffer];
  return [];
}

/** Returns bytes that can be handed over, without a copy if nothing else is in their memory. All empty ones may share theirs. */
export function toOwnBytes(chunk: Buffer): Uint8Array {
  const { buffer, byteOffset, length } = chunk;
  const isWhole = length > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === length;
  return isWhole ? new Uint8Array(buffer, byteOffset, length) : new Uint8Array(chunk);
}

export function toBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
