// Deno's std/encoding/base64, with the names of all its versions.

type Data = string | ArrayBuffer | Uint8Array;

export function encodeBase64(data: Data): string {
  return toBuffer(data).toString("base64");
}

/** Throws, unlike Node, if the text is no base64. */
export function decodeBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export { decodeBase64 as decode, encodeBase64 as encode };

export function toBuffer(data: Data): Buffer {
  if (typeof data === "string") return Buffer.from(data);
  return data instanceof Uint8Array ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}
