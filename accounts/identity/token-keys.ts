import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
} from "node:crypto";
import { type Config, isEmbedded } from "#config";
import { type Algorithm, algorithmsOf, type DeploymentSecrets, isKeySetText, parseKeySet, type WebKey } from "#runtime";

/** The keys of a deployment. The algorithm is a property of each key: tokens cannot choose one. */
export type TokenKeys = {
  /** Null if the settings have only keys that verify: the deployment issues no tokens then. */
  readonly signing: SigningKey | null;
  /** The current key, then the previous ones, whose tokens stay valid until they expire, and the keys of other issuers. */
  readonly verifying: readonly TokenKey[];
};

/** The keys of a deployment that issues tokens. */
export type IssuingKeys = TokenKeys & { readonly signing: SigningKey };

/** A key and its id in the header of tokens (`kid`). */
type SigningKey = { readonly id: string; readonly key: KeyObject; readonly algorithm: Algorithm };

export type TokenKey = {
  readonly id: string;
  /** True if the issuer named the key. Tokens with an unknown id are verified with the other keys. */
  readonly isNamed: boolean;
  readonly key: KeyObject;
  readonly algorithms: readonly Algorithm[];
  /** True if only another party can sign with the key. */
  readonly isForeign: boolean;
};

type KeyMaterial = Pick<Config, "jwtSecret" | "jwtSecretIsBase64" | "jwtPrivateKey"> &
  Partial<Pick<Config, "jwtPreviousSecrets" | "jwtPreviousPublicKeys">>;

const SECRET_ALGORITHM = "HS256";

/** The keys of a deployment that issues tokens; throws if the settings have only keys that verify. */
export function makeTokenKeys(material: KeyMaterial): IssuingKeys {
  return requireIssuingKeys(readTokenKeys(material));
}

export function readTokenKeys(material: KeyMaterial): TokenKeys {
  const { jwtSecret, jwtSecretIsBase64, jwtPrivateKey, jwtPreviousSecrets, jwtPreviousPublicKeys } = material;
  const toSecret = (secret: string) => ownSecret(Buffer.from(secret, jwtSecretIsBase64 ? "base64" : "utf8"));
  const webKeys = jwtSecret !== null && isKeySetText(jwtSecret) ? parseKeySet(jwtSecret) : [];
  const previous = [...(jwtPreviousPublicKeys ?? []).map(ownPublicKey), ...(jwtPreviousSecrets ?? []).map(toSecret)];
  const others = [...previous, ...webKeys.map(toTokenKey)];
  if (jwtPrivateKey) {
    const key = createPrivateKey(jwtPrivateKey);
    const current = ownPublicKey(key);
    const signing = { id: current.id, key, algorithm: current.algorithms[0]! };
    // A JWT_SECRET that is no key set is not in use beside a private key, unless it is a previous one.
    return { signing, verifying: [current, ...others] };
  }
  if (jwtSecret === null || webKeys.length > 0) return { signing: findSigningKey(webKeys), verifying: others };
  const current = toSecret(jwtSecret);
  return {
    signing: { id: current.id, key: current.key, algorithm: SECRET_ALGORITHM },
    verifying: [current, ...others],
  };
}

/** Keys of another issuer. */
export function toForeignKeys(webKeys: readonly WebKey[]): readonly TokenKey[] {
  return webKeys.map((webKey) => ({ ...toTokenKey(webKey), isForeign: true }));
}

export function canIssueTokens(keys: TokenKeys): keys is IssuingKeys {
  return keys.signing !== null;
}

export function requireIssuingKeys(keys: TokenKeys): IssuingKeys {
  if (canIssueTokens(keys)) return keys;
  throw new Error("The settings have only keys that verify tokens. Set JWT_PRIVATE_KEY to sign with.");
}

/** Prefers a private key to a secret, which all verifiers know too. */
function findSigningKey(webKeys: readonly WebKey[]): SigningKey | null {
  const signers = webKeys.filter(({ signingKey }) => signingKey !== null);
  const webKey = signers.find(({ signingKey }) => signingKey!.type === "private") ?? signers[0];
  return webKey ? { id: webKeyId(webKey), key: webKey.signingKey!, algorithm: webKey.algorithms[0]! } : null;
}

function ownPublicKey(source: KeyObject | string): TokenKey {
  const key = createPublicKey(source);
  return { id: thumbprintOf(key), isNamed: false, key, algorithms: algorithmsOf(key).slice(0, 1), isForeign: false };
}

function ownSecret(secret: Buffer): TokenKey {
  const key = createSecretKey(secret);
  return { id: secretKeyId(key), isNamed: false, key, algorithms: [SECRET_ALGORITHM], isForeign: false };
}

function toTokenKey(webKey: WebKey): TokenKey {
  const { id, key, signingKey, algorithms } = webKey;
  const isForeign = key.type === "public" && signingKey === null;
  return { id: webKeyId(webKey), isNamed: id !== null, key, algorithms, isForeign };
}

function webKeyId({ id, key }: WebKey): string {
  return id ?? (key.type === "secret" ? secretKeyId(key) : thumbprintOf(key));
}

/** RFC 7638 prescribes the required members, in this order. */
function thumbprintOf(key: KeyObject): string {
  const { crv, e, kty, n, x, y } = key.export({ format: "jwk" });
  return hash("sha256", JSON.stringify({ crv, e, kty, n, x, y }), "base64url");
}

/** The id is not the thumbprint, which would reveal a hash of the secret (RFC 7638 §7); this id reveals no more than any signature. */
function secretKeyId(secret: KeyObject): string {
  return createHmac("sha256", secret).update("kid").digest("base64url").slice(0, 16);
}

/** Returns the token keys of the settings, with those that were generated for the embedded database if the settings cannot sign. */
export async function loadDeploymentKeys(
  config: Config,
  readSecrets: (dataDir: string) => Promise<DeploymentSecrets>,
): Promise<TokenKeys> {
  const keys = readTokenKeys(config);
  if (keys.signing || !isEmbedded(config)) return keys;
  const { jwtSecret } = await readSecrets(config.dataDir);
  const generated = makeTokenKeys({ jwtSecret, jwtSecretIsBase64: false, jwtPrivateKey: null });
  return { signing: generated.signing, verifying: [...generated.verifying, ...keys.verifying] };
}

/** Returns the public keys that verify our tokens, as a JWKS (RFC 7517): neither secrets nor the keys of other issuers. */
export function toPublicKeySet({ verifying }: TokenKeys): readonly object[] {
  return verifying.filter(({ key, isForeign }) => key.type === "public" && !isForeign).map(toJsonWebKey);
}

/** Returns all keys that verify tokens, including secrets, for code that may know them. */
export function toVerifyingKeySet({ verifying }: TokenKeys): readonly object[] {
  return verifying.map(toJsonWebKey);
}

function toJsonWebKey({ id, key, algorithms: [alg] }: TokenKey): object {
  return { ...key.export({ format: "jwk" }), kid: id, alg, use: "sig" };
}

/** Derives an encryption key of 32 bytes, which is the same in all gateways of the deployment. */
export function deriveEncryptionKey({ key }: Pick<SigningKey, "key">, purpose: string): Buffer {
  const material = key.type === "secret" ? key.export() : key.export({ type: "pkcs8", format: "der" });
  return Buffer.from(hkdfSync("sha256", material, "", purpose, 32));
}
