import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts so that only who has the key of 32 bytes can read it, and nobody can change it. */
export function sealBytes(parts: readonly (string | Buffer)[], key: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const sealed = parts.map((part) => (typeof part === "string" ? cipher.update(part, "utf8") : cipher.update(part)));
  return Buffer.concat([nonce, ...sealed, cipher.final(), cipher.getAuthTag()]);
}

export function openBytes(sealed: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}
