import { createHmac, createPrivateKey, createPublicKey, createSecretKey, hash, type KeyObject } from "node:crypto";
import type { Config } from "../config/config.ts";

/** The keys of a deployment. The algorithm belongs to them: a token never picks its own. */
export type TokenKeys = {
  readonly algorithm: "HS256" | "RS256";
  readonly signing: TokenKey;
  /** The one of now first, then those of before, whose tokens are good until they expire. */
  readonly verifying: readonly TokenKey[];
};

/** The id is what a token names its key by (`kid`). */
export type TokenKey = { readonly id: string; readonly key: KeyObject };

type KeyMaterial = Pick<Config, "jwtSecret" | "jwtSecretIsBase64" | "jwtPrivateKey"> &
  Partial<Pick<Config, "jwtPreviousSecrets" | "jwtPreviousPublicKeys">>;

export function makeTokenKeys({ jwtSecretIsBase64, ...material }: KeyMaterial): TokenKeys {
  const { jwtSecret, jwtPrivateKey, jwtPreviousSecrets, jwtPreviousPublicKeys } = material;
  if (jwtPrivateKey) {
    const key = createPrivateKey(jwtPrivateKey);
    const verifying = [key, ...(jwtPreviousPublicKeys ?? [])].map((each) => named(createPublicKey(each)));
    return { algorithm: "RS256", signing: { id: verifying[0]!.id, key }, verifying };
  }
  if (!jwtSecret) throw new Error("Neither JWT_SECRET nor JWT_PRIVATE_KEY is set");
  const verifying = [jwtSecret, ...(jwtPreviousSecrets ?? [])].map((secret) =>
    named(createSecretKey(Buffer.from(secret, jwtSecretIsBase64 ? "base64" : "utf8"))),
  );
  return { algorithm: "HS256", signing: verifying[0]!, verifying };
}

function named(key: KeyObject): TokenKey {
  return { id: key.type === "secret" ? idOfSecret(key) : thumbprintOf(key), key };
}

/** RFC 7638 */
function thumbprintOf(key: KeyObject): string {
  const { e, kty, n } = key.export({ format: "jwk" });
  return hash("sha256", JSON.stringify({ e, kty, n }), "base64url");
}

/** Not its thumbprint, which RFC 7638 §7 warns of: this tells no more of the secret than any signature does. */
function idOfSecret(secret: KeyObject): string {
  return createHmac("sha256", secret).update("kid").digest("base64url").slice(0, 16);
}
