import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject } from "node:crypto";

/** The keys of a deployment. The algorithm belongs to them: a token never picks its own. */
export type TokenKeys = {
  readonly algorithm: "HS256" | "RS256";
  readonly signing: KeyObject;
  readonly verifying: KeyObject;
};

type KeyMaterial = {
  readonly jwtSecret: string | null;
  readonly jwtSecretIsBase64: boolean;
  readonly jwtPrivateKey: string | null;
};

export function makeTokenKeys({ jwtSecret, jwtSecretIsBase64, jwtPrivateKey }: KeyMaterial): TokenKeys {
  if (jwtPrivateKey) {
    const signing = createPrivateKey(jwtPrivateKey);
    return { algorithm: "RS256", signing, verifying: createPublicKey(signing) };
  }
  if (!jwtSecret) throw new Error("Neither JWT_SECRET nor JWT_PRIVATE_KEY is set");
  const secret = createSecretKey(Buffer.from(jwtSecret, jwtSecretIsBase64 ? "base64" : "utf8"));
  return { algorithm: "HS256", signing: secret, verifying: secret };
}
