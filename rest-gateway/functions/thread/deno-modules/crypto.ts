// Deno's std/crypto: Web Crypto with more digests.

import { createHash, timingSafeEqual as isEqual, webcrypto } from "node:crypto";
import { toBytes } from "./bytes.ts";

type Bytes = ArrayBuffer | ArrayBufferView;
type DigestAlgorithm = string | { readonly name: string };

/** Node's names of the digests. */
const DIGESTS: Readonly<Record<string, string>> = {
  MD5: "md5",
  "RIPEMD-160": "ripemd160",
  "SHA-1": "sha1",
  "SHA-224": "sha224",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
  "SHA3-224": "sha3-224",
  "SHA3-256": "sha3-256",
  "SHA3-384": "sha3-384",
  "SHA3-512": "sha3-512",
};

function openHash(algorithm: DigestAlgorithm) {
  const name = typeof algorithm === "string" ? algorithm : algorithm.name;
  const digest = DIGESTS[name.toUpperCase()];
  if (digest === undefined)
    throw new DOMException(`The digest ${name} is not available in functions of this service`, "NotSupportedError");
  return createHash(digest);
}

function isBytes(data: unknown): data is Bytes {
  return data instanceof ArrayBuffer || ArrayBuffer.isView(data);
}

function digestSync(algorithm: DigestAlgorithm, data: Bytes | Iterable<Bytes>): ArrayBuffer {
  const hash = openHash(algorithm);
  for (const piece of isBytes(data) ? [data] : data) hash.update(toBytes(piece));
  return new Uint8Array(hash.digest()).buffer;
}

async function digest(
  algorithm: DigestAlgorithm,
  data: Bytes | Iterable<Bytes> | AsyncIterable<Bytes>,
): Promise<ArrayBuffer> {
  const hash = openHash(algorithm);
  for await (const piece of isBytes(data) ? [data] : data) hash.update(toBytes(piece));
  return new Uint8Array(hash.digest()).buffer;
}

/** Compares in a time that depends on the lengths only. */
export function timingSafeEqual(one: Bytes, other: Bytes): boolean {
  return one.byteLength === other.byteLength && isEqual(toBytes(one), toBytes(other));
}

export function toHashString(hash: ArrayBuffer, encoding: "hex" | "base64" = "hex"): string {
  return Buffer.from(hash).toString(encoding);
}

const { subtle } = webcrypto;

export const crypto = {
  getRandomValues: webcrypto.getRandomValues.bind(webcrypto),
  randomUUID: webcrypto.randomUUID.bind(webcrypto),
  subtle: {
    decrypt: subtle.decrypt.bind(subtle),
    deriveBits: subtle.deriveBits.bind(subtle),
    deriveKey: subtle.deriveKey.bind(subtle),
    encrypt: subtle.encrypt.bind(subtle),
    exportKey: subtle.exportKey.bind(subtle),
    generateKey: subtle.generateKey.bind(subtle),
    importKey: subtle.importKey.bind(subtle),
    sign: subtle.sign.bind(subtle),
    unwrapKey: subtle.unwrapKey.bind(subtle),
    verify: subtle.verify.bind(subtle),
    wrapKey: subtle.wrapKey.bind(subtle),
    digest,
    digestSync,
    timingSafeEqual,
  },
};
