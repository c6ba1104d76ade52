import { createHash, hkdfSync } from "node:crypto";
import { openBytes, sealBytes } from "../../engine/sealed.ts";
import type { GatewayResponse } from "../http.ts";

/** The id under which a response is stored, and the secret that encrypts it. */
export type StorageKey = { readonly id: string; readonly secret: Buffer };

export type StoredResponse = { readonly fingerprint: string; readonly response: GatewayResponse };

const NEW_LINE = 10;

/** Derives both from the idempotency key and the caller, so that a stored response cannot be read without them. */
export function deriveStorageKey(scope: string, identity: string, key: string): StorageKey {
  const derived = Buffer.from(hkdfSync("sha256", key, identity, scope, 64));
  return { id: derived.toString("hex", 0, 32), secret: derived.subarray(32) };
}

/** A hash that identifies a request. */
export function fingerprintParts(parts: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  // The lengths distinguish ["ab", "c"] from ["a", "bc"].
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest("base64");
}

export function encryptResponse({ fingerprint, response }: StoredResponse, { secret }: StorageKey): Buffer {
  const { status, headers, body } = response;
  const head = JSON.stringify({ fingerprint, status, headers, isEmpty: body === null });
  // JSON.stringify escapes line feeds, so the first one ends the head.
  return sealBytes([`${head}\n`, body ?? ""], secret);
}

export function decryptResponse(sealed: Buffer, { secret }: StorageKey): StoredResponse {
  const plain = openBytes(sealed, secret);
  const end = plain.indexOf(NEW_LINE);
  const { fingerprint, status, headers, isEmpty } = JSON.parse(plain.toString("utf8", 0, end));
  return { fingerprint, response: { status, headers, body: isEmpty ? null : plain.subarray(end + 1) } };
}
