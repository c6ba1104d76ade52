import { hash, randomBytes } from "node:crypto";

/** 256 random bits. A plain SHA-256 digest is safe to store, because it cannot be guessed. */
export function generateSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** The digest that the database stores instead of the secret. */
export function digestOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
