// Deno's std/encoding/hex, with the names of all its versions.

import { toBytes } from "./bytes.ts";

export function encodeHex(data: string | ArrayBuffer | Uint8Array): string {
  return toBytes(data).toString("hex");
}

/** Throws, unlike Node, if the text is no hexadecimal number. */
export function decodeHex(text: string): Uint8Array {
  if (text.length % 2 !== 0) throw new RangeError("The hexadecimal text has an odd length");
  const other = /[^\da-f]/i.exec(text);
  if (other) throw new TypeError(`The hexadecimal text has the letter '${other[0]}'`);
  return new Uint8Array(Buffer.from(text, "hex"));
}

/** Until version 0.210 of std, `encode` and `decode` convert between bytes. */
export function encode(bytes: Uint8Array): Uint8Array {
  return new TextEncoder().encode(encodeHex(bytes));
}

export function decode(bytes: Uint8Array): Uint8Array {
  return decodeHex(new TextDecoder().decode(bytes));
}
