// Deno's std/encoding/base32, with the names of all its versions.

import { toBytes } from "./bytes.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

export function encodeBase32(data: string | ArrayBuffer | Uint8Array): string {
  const bits = [...toBytes(data)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const groups = bits.match(/.{1,5}/g) ?? [];
  const text = groups.map((group) => LETTERS[Number.parseInt(group.padEnd(5, "0"), 2)]).join("");
  return text.padEnd(Math.ceil(text.length / 8) * 8, "=");
}

export function decodeBase32(text: string): Uint8Array {
  const letters = text.replace(/=+$/, "");
  if (!/^[A-Z2-7]*$/.test(letters)) throw new TypeError("Illegal base32 string");
  const bits = [...letters].map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2));
}

export { decodeBase32 as decode, encodeBase32 as encode };
