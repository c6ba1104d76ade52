import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import { type Config, isEmbedded } from "../config/config.ts";
import type { DeploymentSecrets } from "../secrets.ts";

/** The keys of a deployment. The algorithm is a property of the keys: tokens cannot choose one. */
export type TokenKeys = {
  readonly algorithm: "HS256" | "RS256";
  readonly signing: TokenKey;
  /** The current key, then previous ones, whose tokens stay valid until they expire. */
  readonly verifying: readonly TokenKey[];
};

/** A key and its id in the header of tokens (`kid`). */
export type TokenKey = { readonly id: string; readonly key: KeyObject };

type KeyMaterial = Pick<Config, "jwtSecret" | "jwtSecretIsBase64" | "jwtPrivateKey"> &
  Partial<Pick<Config, "jwtPreviousSecrets" | "jwtPreviousPublicKeys">>;

export function makeTokenKeys({ jwtSecretIsBase64, ...material }: KeyMaterial): TokenKeys {
  const { jwtSecret, jwtPrivateKey, jwtPreviousSecrets, jwtPreviousPublicKeys } = material;
  if (jwtPrivateKey) {
    const key = createPrivateKey(jwtPrivateKey);
    const verifying = [key, ...(jwtPreviousPublicKeys ?? [])].map((each) => withId(createPublicKey(each)));
    return { algorithm: "RS256", signing: { id: verifying[0]!.id, key }, verifying };
  }
  if (!jwtSecret) throw new Error("Neither JWT_SECRET nor JWT_PRIVATE_KEY is set");
  const verifying = [jwtSecret, ...(jwtPreviousSecrets ?? [])].map((secret) =>
    withId(createSecretKey(Buffer.from(secret, jwtSecretIsBase64 ? "base64" : "utf8"))),
  );
  return { algorithm: "HS256", signing: verifying[0]!, verifying };
}

function withId(key: KeyObject): TokenKey {
  return { id: key.type === "secret" ? secretKeyId(key) : thumbprintOf(key), key };
}

/** RFC 7638 */
function thumbprintOf(key: KeyObject): string {
  const { e, kty, n } = key.export({ format: "jwk" });
  return hash("sha256", JSON.stringify({ e, kty, n }), "base64url");
}

/** Not the thumbprint, which would reveal a hash of the secret (RFC 7638 §7); this reveals no more than any signature. */
function secretKeyId(secret: KeyObject): string {
  return createHmac("sha256", secret).update("kid").digest("base64url").slice(0, 16);
}

/** The token keys of the settings, or else those that were generated for the embedded database. */
export async function loadDeploymentKeys(
  config: Config,
  readSecrets: (dataDir: string) => Promise<DeploymentSecrets>,
): Promise<TokenKeys> {
  const isConfigured = config.jwtSecret !== null || config.jwtPrivateKey !== null;
  if (isConfigured || !isEmbedded(config)) return makeTokenKeys(config);
  const { jwtSecret } = await readSecrets(config.dataDir);
  return makeTokenKeys({ ...config, jwtSecret, jwtSecretIsBase64: false });
}

/** Derives an encryption key of 32 bytes, which is the same in all gateways of the deployment. */
export function deriveEncryptionKey({ key }: TokenKey, purpose: string): Buffer {
  const material = key.type === "secret" ? key.export() : key.export({ type: "pkcs8", format: "der" });
  return Buffer.from(hkdfSync("sha256", material, "", purpose, 32));
}
