import { decryptBytes, encryptBytes } from "#runtime";
import { deriveEncryptionKey, type IssuingKeys, type TokenKeys } from "./token-keys.ts";

/** Encrypts a text with the deployment's key, for one purpose. */
export function sealText(text: string, { signing }: Pick<IssuingKeys, "signing">, purpose: string): Buffer {
  return encryptBytes([text], deriveEncryptionKey(signing, purpose));
}

/** Returns null if none of the keys has encrypted the text for this purpose. */
export function openSealedText(sealed: Buffer, { signing, verifying }: TokenKeys, purpose: string): string | null {
  const keys = [...(signing ? [signing] : []), ...verifying].filter(({ key }) => key.type !== "public");
  for (const key of keys) {
    const text = tryDecrypt(sealed, deriveEncryptionKey(key, purpose));
    if (text !== null) return text;
  }
  return null;
}

function tryDecrypt(sealed: Buffer, key: Buffer): string | null {
  try {
    return decryptBytes(sealed, key).toString("utf8");
  } catch {
    return null;
  }
}
