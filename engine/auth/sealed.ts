import { hkdfSync } from "node:crypto";
import { openBytes, sealBytes } from "../sealed.ts";

/** Encrypts a text so that it can be read by the bearers of the secret alone. */
export function seal(text: string, secret: string): Buffer {
  return sealBytes([text], keyOf(secret));
}

export function unseal(sealed: Buffer, secret: string): string {
  return openBytes(sealed, keyOf(secret)).toString("utf8");
}

/** Another digest of the secret than the one that the database has. */
function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "sealed answer", 32));
}
