import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import type { GatewayResponse } from "../http.ts";

/** Where an answer is kept, and the secret that it is sealed with. */
export type Place = { readonly id: string; readonly secret: Buffer };

export type KeptAnswer = { readonly fingerprint: string; readonly response: GatewayResponse };

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
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
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, secret, nonce);
  // JSON on one line has no line end in it.
  const sealed = [cipher.update(`${head}\n`), cipher.update(body ?? ""), cipher.final()];
  return Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]);
}

export function unseal(sealed: Buffer, { secret }: Place): KeptAnswer {
  const decipher = createDecipheriv(CIPHER, secret, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  const end = plain.indexOf(NEW_LINE);
  const { fingerprint, status, headers, isEmpty } = JSON.parse(plain.toString("utf8", 0, end));
  return { fingerprint, response: { status, headers, body: isEmpty ? null : plain.subarray(end + 1) } };
}
