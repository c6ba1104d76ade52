import { hash, randomBytes } from "node:crypto";

/** 256 bits: nothing that could be guessed, so a plain digest is enough to keep it by. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** What the database keeps of a secret. */
export function digestOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
