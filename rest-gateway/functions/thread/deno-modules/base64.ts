// Deno's std/encoding/base64, with the names of all its versions.

import { toBytes } from "./bytes.ts";

export function encodeBase64(data: string | ArrayBuffer | Uint8Array): string {
  return toBytes(data).toString("base64");
}

/** Throws, unlike Node, if the text is no base64. */
export function decodeBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export { decodeBase64 as decode, encodeBase64 as encode };
