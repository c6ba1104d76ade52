// Deno's std/encoding/base64url, with the names of all its versions.

import { toBytes } from "./bytes.ts";

export function encodeBase64Url(data: string | ArrayBuffer | Uint8Array): string {
  return toBytes(data).toString("base64url");
}

export function decodeBase64Url(text: string): Uint8Array {
  const letters = text.replace(/={0,2}$/, "");
  if (!/^[\w-]*$/.test(letters) || letters.length % 4 === 1) throw new TypeError("Illegal base64url string");
  return new Uint8Array(Buffer.from(letters, "base64url"));
}

export { decodeBase64Url as decode, encodeBase64Url as encode };
