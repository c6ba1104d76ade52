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

/** Not its thumbprint, which RFC 7638 §7 warns of: this tells no more of the secret than any signature does. */
function secretKeyId(secret: KeyObject): string {
  return createHmac("sha256", secret).update("kid").digest("base64url").slice(0, 16);
}

/** The deployment's token keys: those of the settings, else the ones that were made for the embedded database. */
export async function loadDeploymentKeys(
  config: Config,
  readSecrets: (dataDir: string) => Promise<DeploymentSecrets>,
): Promise<TokenKeys> {
  const isConfigured = config.jwtSecret !== null || config.jwtPrivateKey !== null;
  if (isConfigured || !isEmbedded(config)) return makeTokenKeys(config);
  const { jwtSecret } = await readSecrets(config.dataDir);
  return makeTokenKeys({ ...config, jwtSecret, jwtSecretIsBase64: false });
}

/** A key of 32 bytes that every gateway of the deployment has, for that purpose alone. */
export function deriveEncryptionKey({ key }: TokenKey, purpose: string): Buffer {
  const material = key.type === "secret" ? key.export() : key.export({ type: "pkcs8", format: "der" });
  return Buffer.from(hkdfSync("sha256", material, "", purpose, 32));
}
