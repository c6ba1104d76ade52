import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { decodeAwsChunked } from "./aws-chunked.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";

/** The body of a request. */
export type Payload = {
  /** Throws at its end unless it has the announced length and checksums. */
  readonly content: AsyncIterable<Buffer>;
  /** Throws unless the content is the one that was signed. */
  checkHash(sha256: string): void;
};

type Checksum = { update(data: Buffer): void; digest(): string };

export function openPayload(request: S3Request, maxBytes: number): Payload {
  const { payload } = request;
  const announced = announcedLength(request);
  if (announced !== null && announced > maxBytes) throw s3Error("EntityTooLarge");
  const checks = openChecks(request);
  const body = request.streamBody();
  const onTrailer = (name: string, value: string) => {
    if (!checks.awaited.delete(name)) throw s3Error("MalformedTrailerError");
    expectChecksum(checks.expected, name, value, "trailing header");
    const { [name]: inHeader = value } = request.headers;
    if (inHeader !== value) throw s3Error("InvalidRequest", `The header and the trailing header ${name} differ.`);
  };
  const decoded =
    payload.kind === "chunks" ? decodeAwsChunked(body, { signature: payload.signature, onTrailer }) : body;
  return {
    content: check(decoded, announced, checks),
    checkHash(sha256) {
      if (payload.kind === "digest" && payload.sha256 !== sha256) throw s3Error("XAmzContentSHA256Mismatch");
    },
  };
}

/** A small body as a whole. */
export async function readPayload(request: S3Request, maxBytes: number): Promise<Buffer> {
  const payload = openPayload(request, maxBytes);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of payload.content) {
    bytes += piece.length;
    if (bytes > maxBytes) throw s3Error("EntityTooLarge");
    pieces.push(piece);
  }
  const whole = Buffer.concat(pieces);
  payload.checkHash(createHash("sha256").update(whole).digest("hex"));
  return whole;
}

function announcedLength({ payload, headers }: S3Request): number | null {
  const text = payload.kind === "chunks" ? headers["x-amz-decoded-content-length"] : headers["content-length"];
  if (text === undefined) {
    if (payload.kind === "chunks") throw s3Error("MissingContentLength");
    return null;
  }
  if (typeof text !== "string" || !/^\d{1,15}$/.test(text))
    throw s3Error("InvalidArgument", "The length is no number.");
  return Number(text);
}

type Checks = {
  readonly computed: ReadonlyMap<string, Checksum>;
  readonly expected: Map<string, string>;
  /** Announced trailers that have not come. */
  readonly awaited: Set<string>;
};

/** CRC32C and CRC64NVME are not computed. */
const CHECKSUMS: ReadonlyMap<string, { readonly bytes: number; readonly open: () => Checksum }> = new Map([
  ["x-amz-checksum-crc32", { bytes: 4, open: openCrc32 }],
  ["x-amz-checksum-sha1", { bytes: 20, open: () => openHash("sha1") }],
  ["x-amz-checksum-sha256", { bytes: 32, open: () => openHash("sha256") }],
]);

/** Checksums that the headers have or announce. */
function openChecks(request: S3Request): Checks {
  const computed = new Map<string, Checksum>();
  const expected = new Map<string, string>();
  const awaited = announcedTrailers(request);
  const md5 = request.headers["content-md5"];
  if (typeof md5 === "string") {
    if (!/^[A-Za-z0-9+/]{22}==$/.test(md5)) throw s3Error("InvalidDigest");
    computed.set("content-md5", openHash("md5"));
    expected.set("content-md5", md5);
  }
  for (const [name, { open }] of CHECKSUMS) {
    // Not of the query: signers of addresses put the checksum of no body there.
    const value = request.headers[name];
    if (typeof value === "string") expectChecksum(expected, name, value, "header");
    if (value !== undefined || awaited.has(name)) computed.set(name, open());
  }
  return { computed, expected, awaited };
}

function announcedTrailers({ headers, payload }: S3Request): Set<string> {
  const names = String(headers["x-amz-trailer"] ?? "").split(",");
  const announced = new Set(names.map((name) => name.trim().toLowerCase()).filter((name) => name !== ""));
  if (announced.size > 0 && payload.kind !== "chunks") throw s3Error("MalformedTrailerError");
  return announced;
}

function expectChecksum(expected: Map<string, string>, name: string, value: string, place: string): void {
  const known = CHECKSUMS.get(name);
  const bytes = Buffer.from(value, "base64");
  if (known && (bytes.length !== known.bytes || bytes.toString("base64") !== value))
    throw s3Error("InvalidRequest", `Value for ${name} ${place} is invalid.`);
  expected.set(name, value);
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

function openHash(algorithm: string): Checksum {
  const hash = createHash(algorithm);
  return { update: (data) => void hash.update(data), digest: () => hash.digest("base64") };
}

async function* check(
  content: AsyncIterable<Buffer>,
  announced: number | null,
  { computed, expected, awaited }: Checks,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    for (const checksum of computed.values()) checksum.update(piece);
    yield piece;
  }
  if (announced !== null && bytes !== announced) throw s3Error("IncompleteBody");
  if (awaited.size > 0) throw s3Error("MalformedTrailerError");
  for (const [name, checksum] of computed) {
    if (checksum.digest() !== expected.get(name)) throw badDigest(name);
  }
}

function badDigest(name: string): Error {
  if (name === "content-md5")
    return s3Error("BadDigest", "The Content-MD5 you specified did not match what we received.");
  const algorithm = name.slice("x-amz-checksum-".length).toUpperCase();
  return s3Error("BadDigest", `The ${algorithm} you specified did not match the calculated checksum.`);
}
