import type { TokenKeys } from "../../caller/keys.ts";
import { sealingKey } from "../../caller/sealing-key.ts";
import { openBytes, sealBytes } from "../../sealed.ts";

const ENCRYPTED_PREFIX = "sealed:";
const PURPOSE = "provider secret";

/** Encrypts a client secret with the deployment's key. It cannot be stored as a digest, because it is sent to the provider. */
export function encryptSecret(secret: string, { signing }: TokenKeys): string {
  return ENCRYPTED_PREFIX + sealBytes([secret], sealingKey(signing, PURPOSE)).toString("base64");
}

/** A secret that was inserted by SQL is stored as plain text. */
export function decryptSecret(kept: string, { signing, verifying }: TokenKeys): string {
  if (!kept.startsWith(ENCRYPTED_PREFIX)) return kept;
  const sealed = Buffer.from(kept.slice(ENCRYPTED_PREFIX.length), "base64");
  const keys = [signing, ...verifying].filter(({ key }) => key.type !== "public");
  for (const key of keys) {
    const secret = tryDecrypt(sealed, sealingKey(key, PURPOSE));
    if (secret !== null) return secret;
  }
  throw new Error(
    "The provider's secret was encrypted with another JWT_SECRET or JWT_PRIVATE_KEY: remove the provider and add it again.",
  );
}

function tryDecrypt(sealed: Buffer, key: Buffer): string | null {
  try {
    return openBytes(sealed, key).toString("utf8");
  } catch {
    return null;
  }
}
