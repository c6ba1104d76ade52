import { hkdfSync } from "node:crypto";
import { openBytes, sealBytes } from "../sealed.ts";

/** Encrypts a text with a key derived from the secret. */
export function encryptText(text: string, secret: string): Buffer {
  return sealBytes([text], deriveKey(secret));
}

export function decryptText(sealed: Buffer, secret: string): string {
  return openBytes(sealed, deriveKey(secret)).toString("utf8");
}

/** Differs from the digest of the secret that the database stores. */
function deriveKey(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "sealed answer", 32));
}
