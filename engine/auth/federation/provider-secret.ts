import type { TokenKeys } from "../../caller/keys.ts";
import { sealingKey } from "../../caller/sealing-key.ts";
import { openBytes, sealBytes } from "../../sealed.ts";

const MARK = "sealed:";
const PURPOSE = "provider secret";

/** What the provider must be shown cannot be a digest; without the deployment's own secret nobody reads it in the database. */
export function sealSecret(secret: string, { signing }: TokenKeys): string {
  return MARK + sealBytes([secret], sealingKey(signing, PURPOSE)).toString("base64");
}

/** One that was written in SQL stands there as it is. */
export function openSecret(kept: string, { signing, verifying }: TokenKeys): string {
  if (!kept.startsWith(MARK)) return kept;
  const sealed = Buffer.from(kept.slice(MARK.length), "base64");
  const keys = [signing, ...verifying].filter(({ key }) => key.type !== "public");
  for (const key of keys) {
    const secret = tryToOpen(sealed, sealingKey(key, PURPOSE));
    if (secret !== null) return secret;
  }
  throw new Error("The provider's secret was sealed by another JWT_SECRET or JWT_PRIVATE_KEY: add the provider anew.");
}

function tryToOpen(sealed: Buffer, key: Buffer): string | null {
  try {
    return openBytes(sealed, key).toString("utf8");
  } catch {
    return null;
  }
}
