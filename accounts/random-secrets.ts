import { hash, hkdfSync, randomBytes } from "node:crypto";
import { decryptBytes, encryptBytes } from "#runtime";

/** Returns 256 random bits. A plain SHA-256 digest of them is safe to store, because they cannot be guessed. */
export function generateSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** The digest that the database stores instead of the secret. */
export function digestOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

/** Encrypts a text with a key derived from the secret. */
export function encryptText(text: string, secret: string): Buffer {
  return encryptBytes([text], deriveKey(secret));
}

export function decryptText(sealed: Buffer, secret: string): string {
  return decryptBytes(sealed, deriveKey(secret)).toString("utf8");
}

/** The key differs from the digest of the secret that the database stores. */
function deriveKey(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "sealed answer", 32));
}

/** Checks ids of requests: Postgres would respond to other texts with an error. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text);
}
