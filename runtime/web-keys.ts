import {
  constants,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type JsonWebKey,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from "node:crypto";
import { isJsonObject } from "./json/json-values.ts";

/** The signature algorithms of RFC 7518 §3 and RFC 8037, by their names in the header of a token. */
export type Algorithm = keyof typeof ALGORITHMS;

type AlgorithmDefinition = {
  /** The only type of key that the algorithm accepts: a public key is never an HMAC secret. */
  readonly keyType: string;
  readonly hash: string | null;
  readonly options?: { readonly padding?: number; readonly saltLength?: number; readonly dsaEncoding?: "ieee-p1363" };
};

const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
const FIXED_LENGTH = { dsaEncoding: "ieee-p1363" } as const;

/** The algorithms; a key without `alg` signs with the first one of its type. */
const ALGORITHMS = {
  HS256: { keyType: "secret", hash: "sha256" },
  HS384: { keyType: "secret", hash: "sha384" },
  HS512: { keyType: "secret", hash: "sha512" },
  RS256: { keyType: "rsa", hash: "sha256" },
  RS384: { keyType: "rsa", hash: "sha384" },
  RS512: { keyType: "rsa", hash: "sha512" },
  PS256: { keyType: "rsa", hash: "sha256", options: PSS },
  PS384: { keyType: "rsa", hash: "sha384", options: PSS },
  PS512: { keyType: "rsa", hash: "sha512", options: PSS },
  ES256: { keyType: "prime256v1", hash: "sha256", options: FIXED_LENGTH },
  ES384: { keyType: "secp384r1", hash: "sha384", options: FIXED_LENGTH },
  ES512: { keyType: "secp521r1", hash: "sha512", options: FIXED_LENGTH },
  EdDSA: { keyType: "ed25519", hash: null },
} as const satisfies Record<string, AlgorithmDefinition>;

const MIN_SECRET_BYTES = 32;
const MIN_RSA_BITS = 2048;
/** The number is limited because a token without a key id is verified with each key. */
const MAX_KEYS = 100;

/** A key of a JWK or JWKS (RFC 7517). */
export type WebKey = {
  readonly id: string | null;
  /** The key that verifies signatures: a secret or a public key. */
  readonly key: KeyObject;
  /** Null if the key only verifies. A secret signs, unless its `key_ops` say otherwise. */
  readonly signingKey: KeyObject | null;
  readonly algorithms: readonly Algorithm[];
};

export function algorithmsOf(key: KeyObject): readonly Algorithm[] {
  const type = key.type === "secret" ? "secret" : asymmetricTypeOf(key);
  return (Object.keys(ALGORITHMS) as Algorithm[]).filter((name) => ALGORITHMS[name].keyType === type);
}

function asymmetricTypeOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  return asymmetricKeyType === "ec" ? asymmetricKeyDetails?.namedCurve : asymmetricKeyType;
}

/** RSA keys with fewer bits can be factored. */
export function isWeakKey({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  return asymmetricKeyType === "rsa" && (asymmetricKeyDetails?.modulusLength ?? 0) < MIN_RSA_BITS;
}

export function signContent(content: string, algorithm: Algorithm, key: KeyObject): string {
  const { hash, options }: AlgorithmDefinition = ALGORITHMS[algorithm];
  const signature =
    key.type === "secret"
      ? createHmac(hash!, key).update(content).digest()
      : sign(hash, Buffer.from(content), { key, ...options });
  return signature.toString("base64url");
}

export function isValidSignature(signature: string, content: string, algorithm: Algorithm, key: KeyObject): boolean {
  const { keyType, hash, options }: AlgorithmDefinition = ALGORITHMS[algorithm];
  const bytes = Buffer.from(signature, "base64url");
  if (bytes.toString("base64url") !== signature) return false;
  // Passing the key alone takes 10 µs less.
  if (keyType !== "secret") return verify(hash, Buffer.from(content), options ? { key, ...options } : key, bytes);
  const expected = createHmac(hash!, key).update(content).digest();
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

export function isKeySetText(text: string): boolean {
  return /^\s*[{[]/.test(text);
}

/** Parses a JWK, a JWKS or a list of JWKs. Keys that do not verify signatures are left out; invalid ones throw. */
export function parseKeySet(text: string): readonly WebKey[] {
  return listKeys(parseJson(text)).flatMap((jwk) => readWebKey(jwk) ?? []);
}

/** Parses the key set of another party: it may contain keys that we cannot use, and its secrets are not secret. */
export function parsePublicKeySet(text: string): readonly WebKey[] {
  const set = parseJson(text);
  if (!isJsonObject(set) || !Array.isArray(set.keys)) throw new Error("the key set is not a JSON object with keys");
  return listKeys(set).flatMap((jwk) => {
    try {
      const webKey = readWebKey(jwk);
      return webKey && webKey.key.type === "public" ? [{ ...webKey, signingKey: null }] : [];
    } catch {
      return [];
    }
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the key set is not valid JSON");
  }
}

function listKeys(value: unknown): readonly unknown[] {
  const keys = Array.isArray(value) ? value : isJsonObject(value) && Array.isArray(value.keys) ? value.keys : [value];
  if (keys.length > MAX_KEYS) throw new Error(`the key set has more than ${MAX_KEYS} keys`);
  return keys;
}

/** Returns null if the key is for another purpose or of an unknown type. */
function readWebKey(jwk: unknown): WebKey | null {
  if (!isJsonObject(jwk) || typeof jwk.kty !== "string") throw new Error("a key is not a JSON object with kty");
  const { kid, alg, use, key_ops: operations } = jwk;
  const permits = (operation: string) => !Array.isArray(operations) || operations.includes(operation);
  if ((use ?? "sig") !== "sig" || !(permits("verify") || permits("sign"))) return null;
  const pair = jwk.kty === "oct" ? readSecret(jwk) : readKeyPair(jwk);
  const possible = pair ? algorithmsOf(pair.key) : [];
  if (!pair || possible.length === 0) return null;
  const algorithms = alg === undefined || alg === null ? possible : possible.filter((name) => name === alg);
  if (algorithms.length === 0) {
    if (typeof alg === "string" && Object.hasOwn(ALGORITHMS, alg))
      throw new Error(`a key of type ${jwk.kty} cannot use ${alg}`);
    return null;
  }
  const id = typeof kid === "string" ? kid : null;
  return { id, key: pair.key, signingKey: permits("sign") ? pair.signingKey : null, algorithms };
}

type KeyPair = Pick<WebKey, "key" | "signingKey">;

function readSecret({ k }: Readonly<Record<string, unknown>>): KeyPair {
  const bytes = Buffer.from(typeof k === "string" ? k : "", "base64url");
  if (bytes.length < MIN_SECRET_BYTES) throw new Error(`a key of type oct has fewer than ${MIN_SECRET_BYTES} bytes`);
  const key = createSecretKey(bytes);
  return { key, signingKey: key };
}

function readKeyPair(jwk: Readonly<Record<string, unknown>>): KeyPair | null {
  if (!["RSA", "EC", "OKP"].includes(String(jwk.kty))) return null;
  try {
    const signingKey = jwk.d === undefined ? null : createPrivateKey({ key: jwk as JsonWebKey, format: "jwk" });
    const key = signingKey ? createPublicKey(signingKey) : createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
    if (!isWeakKey(key)) return { key, signingKey };
  } catch {
    throw new Error(`a key of type ${jwk.kty} is not valid`);
  }
  throw new Error(`a key of type RSA has fewer than ${MIN_RSA_BITS} bits`);
}
