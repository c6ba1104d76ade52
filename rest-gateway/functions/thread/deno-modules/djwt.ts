// Deno's djwt, versions 2.3 to 3: JSON Web Tokens with keys of Web Crypto.

import type { webcrypto } from "node:crypto";
import { decodeBase64Url, encodeBase64Url } from "./base64url.ts";

type CryptoKey = webcrypto.CryptoKey;
type Header = { readonly alg: string; readonly typ?: string; readonly [name: string]: unknown };
type TokenPayload = {
  readonly aud?: string | readonly string[];
  readonly exp?: number;
  readonly nbf?: number;
  readonly [name: string]: unknown;
};
type VerifyOptions = {
  readonly audience?: string | RegExp | readonly (string | RegExp)[];
  readonly expLeeway?: number;
  readonly nbfLeeway?: number;
  readonly ignoreExp?: boolean;
  readonly ignoreNbf?: boolean;
  readonly predicates?: readonly ((payload: TokenPayload) => boolean)[];
};

const LEEWAY_SECONDS = 1;

export async function create(header: Header, payload: TokenPayload, key: CryptoKey | null): Promise<string> {
  if (payload === null || typeof payload !== "object") throw new Error("The jwt claims set is not a JSON object.");
  checkKey(header.alg, key);
  const input = [header, payload].map((part) => encodeBase64Url(JSON.stringify(part))).join(".");
  const signature = key && (await crypto.subtle.sign(toAlgorithm(header.alg), key, Buffer.from(input)));
  return `${input}.${signature ? encodeBase64Url(signature) : ""}`;
}

export async function verify(token: string, key: CryptoKey | null, options: VerifyOptions = {}): Promise<TokenPayload> {
  const [header, payload, signature] = decode(token) as [Header, TokenPayload, Uint8Array<ArrayBuffer>];
  checkClaims(payload, options);
  checkKey(header.alg, key);
  const input = Buffer.from(token.slice(0, token.lastIndexOf(".")));
  const isGenuine = key
    ? await crypto.subtle.verify(toAlgorithm(header.alg), key, signature, input)
    : signature.length === 0;
  if (!isGenuine) throw new Error("The jwt's signature does not match the verification signature.");
  if (!(options.predicates ?? []).every((test) => test(payload)))
    throw new Error("The payload does not satisfy all passed predicates.");
  return payload;
}

/** Returns header, payload and signature, unverified. */
export function decode(token: string): [header: unknown, payload: unknown, signature: Uint8Array] {
  try {
    const [header, payload, signature] = token.split(".").map(decodeBase64Url) as [Uint8Array, Uint8Array, Uint8Array];
    return [parse(header), parse(payload), signature];
  } catch {
    throw new Error("The serialization of the jwt is invalid.");
  }
}

/** Returns seconds since 1970, of a date or of seconds from now. */
export function getNumericDate(time: number | Date): number {
  return Math.round((time instanceof Date ? time.getTime() : Date.now() + time * 1000) / 1000);
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}

function checkClaims({ exp, nbf, aud }: TokenPayload, options: VerifyOptions): void {
  const { audience, expLeeway = LEEWAY_SECONDS, nbfLeeway = LEEWAY_SECONDS, ignoreExp, ignoreNbf } = options;
  for (const time of [exp, nbf])
    if (time !== undefined && typeof time !== "number") throw new Error("The jwt has an invalid 'exp' or 'nbf' claim.");
  const now = Date.now() / 1000;
  if (!ignoreExp && exp !== undefined && exp + expLeeway < now) throw new RangeError("The jwt is expired.");
  if (!ignoreNbf && nbf !== undefined && nbf - nbfLeeway > now) throw new RangeError("The jwt is used too early.");
  if (audience === undefined) return;
  const accepted = [audience].flat() as (string | RegExp)[];
  const isAccepted = (each: string) =>
    accepted.some((one) => (typeof one === "string" ? one === each : one.test(each)));
  if (![aud ?? []].flat().some((each) => isAccepted(each as string)))
    throw new Error("The identification with the value in the audience claim has failed.");
}

/** A key may only be used with its own algorithm: otherwise a public key could be taken for a secret. */
function checkKey(algorithm: string, key: CryptoKey | null): void {
  if (key === null && algorithm === "none") return;
  const own = key?.algorithm as (webcrypto.KeyAlgorithm & { hash?: { name: string }; namedCurve?: string }) | undefined;
  const ownHash = own?.hash?.name ?? HASH_OF_CURVE[own?.namedCurve ?? ""];
  const { name, hash } = algorithm === "none" ? { name: null, hash: null } : toAlgorithm(algorithm);
  if (own?.name !== name || ownHash !== hash)
    throw new Error(`The jwt's alg '${algorithm}' does not match the key's algorithm.`);
}

const HASH_OF_CURVE: Readonly<Record<string, string>> = { "P-256": "SHA-256", "P-384": "SHA-384", "P-521": "SHA-512" };
const NAMES: Readonly<Record<string, string>> = {
  HS: "HMAC",
  RS: "RSASSA-PKCS1-v1_5",
  PS: "RSA-PSS",
  ES: "ECDSA",
};

function toAlgorithm(algorithm: string): { name: string; hash: string; saltLength?: number } {
  const [, kind = "", bits = ""] = /^(HS|RS|PS|ES)(256|384|512)$/.exec(algorithm) ?? [];
  const name = NAMES[kind];
  if (name === undefined) throw new Error(`The jwt's alg '${algorithm}' is not supported.`);
  return { name, hash: `SHA-${bits}`, ...(kind === "PS" && { saltLength: Number(bits) / 8 }) };
}
