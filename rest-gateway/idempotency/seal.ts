import { createHash, hkdfSync } from "node:crypto";
import { openBytes, sealBytes } from "../../engine/sealed.ts";
import type { GatewayResponse } from "../http.ts";

/** Where an answer is kept, and the secret that it is sealed with. */
export type Place = { readonly id: string; readonly secret: Buffer };

export type KeptAnswer = { readonly fingerprint: string; readonly response: GatewayResponse };

const NEW_LINE = 10;

/** Both halves are derived from the key and its sender: whoever finds the answer without them learns nothing. */
export function placeOf(scope: string, identity: string, key: string): Place {
  const derived = Buffer.from(hkdfSync("sha256", key, identity, scope, 64));
  return { id: derived.toString("hex", 0, 32), secret: derived.subarray(32) };
}

/** What is the same for the same request alone. */
export function fingerprintOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  // Their lengths keep ["ab", "c"] and ["a", "bc"] apart.
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("base64");
}

export function seal({ fingerprint, response }: KeptAnswer, { secret }: Place): Buffer {
  const { status, headers, body } = response;
  const head = JSON.stringify({ fingerprint, status, headers, isEmpty: body === null });
  // JSON on one line has no line end in it.
  return sealBytes([`${head}\n`, body ?? ""], secret);
}

export function unseal(sealed: Buffer, { secret }: Place): KeptAnswer {
  const plain = openBytes(sealed, secret);
  const end = plain.indexOf(NEW_LINE);
  const { fingerprint, status, headers, isEmpty } = JSON.parse(plain.toString("utf8", 0, end));
  return { fingerprint, response: { status, headers, body: isEmpty ? null : plain.subarray(end + 1) } };
}
