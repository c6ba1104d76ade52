import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { IHasher } from "hash-wasm";
import { s3Error } from "./s3-error.ts";

type Checksum = {
  update(data: Buffer): void;
  /** Returns the checksum as base64. */
  digest(): string;
};

type ChecksumAlgorithm = { readonly bytes: number; readonly open: () => Checksum | Promise<Checksum> };

export const CHECKSUM_PREFIX = "x-amz-checksum-";
export const CONTENT_MD5 = "content-md5";

/** The polynomials, with their bits reversed. */
const CASTAGNOLI = 0x82f63b78;
const NVME = "9a6c9329ac4bc9b5";

const ALGORITHMS = {
  crc32: { bytes: 4, open: openCrc32 },
  crc32c: { bytes: 4, open: () => openWasm(({ createCRC32 }) => createCRC32(CASTAGNOLI)) },
  crc64nvme: { bytes: 8, open: () => openWasm(({ createCRC64 }) => createCRC64(NVME)) },
  md5: { bytes: 16, open: () => openHash("md5") },
  sha1: { bytes: 20, open: () => openHash("sha1") },
  sha256: { bytes: 32, open: () => openHash("sha256") },
  sha512: { bytes: 64, open: () => openHash("sha512") },
  xxhash64: { bytes: 8, open: () => openWasm(({ createXXHash64 }) => createXXHash64()) },
  xxhash3: { bytes: 8, open: () => openWasm(({ createXXHash3 }) => createXXHash3()) },
  xxhash128: { bytes: 16, open: () => openWasm(({ createXXHash128 }) => createXXHash128()) },
} satisfies Record<string, ChecksumAlgorithm>;

/** The algorithms by the header or trailer of the checksum. */
export const CHECKSUMS: ReadonlyMap<string, ChecksumAlgorithm> = new Map([
  [CONTENT_MD5, ALGORITHMS.md5],
  ...Object.entries(ALGORITHMS).map(([name, algorithm]) => [CHECKSUM_PREFIX + name, algorithm] as const),
]);

function openHash(algorithm: string): Checksum {
  const hash = createHash(algorithm);
  return { update: (data) => void hash.update(data), digest: () => hash.digest("base64") };
}

function openCrc32(): Checksum {
  let sum = 0;
  return {
    update(data) {
      sum = crc32(data, sum);
    },
    digest() {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(sum);
      return bytes.toString("base64");
    },
  };
}

/** Opens a checksum that Node does not compute; the library is loaded with the first one. */
async function openWasm(create: (library: typeof import("hash-wasm")) => Promise<IHasher>): Promise<Checksum> {
  const hasher = await create(await import("hash-wasm"));
  hasher.init();
  return {
    update: (data) => void hasher.update(data),
    digest: () => Buffer.from(hasher.digest("binary")).toString("base64"),
  };
}

export function badDigest(name: string): Error {
  if (name === CONTENT_MD5)
    return s3Error("BadDigest", "The Content-MD5 you specified did not match what we received.");
  const algorithm = name.slice(CHECKSUM_PREFIX.length).toUpperCase();
  return s3Error("BadDigest", `The ${algorithm} you specified did not match the calculated checksum.`);
}
