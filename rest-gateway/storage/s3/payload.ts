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

const CHECKSUM = /^x-amz-checksum-(crc32|sha1|sha256)$/;

export function openPayload(request: S3Request, maxBytes: number): Payload {
  const { payload } = request;
  const announced = announcedLength(request);
  if (announced !== null && announced > maxBytes) throw s3Error("EntityTooLarge");
  const checks = openChecks(request);
  const body = request.streamBody();
  const onTrailer = (name: string, value: string) => void checks.expected.set(name, value);
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
};

/** Checksums that the headers have or announce. CRC32C and CRC64NVME are not computed. */
function openChecks(request: S3Request): Checks {
  const computed = new Map<string, Checksum>();
  const expected = new Map<string, string>();
  const md5 = request.headers["content-md5"];
  if (typeof md5 === "string") {
    if (!/^[A-Za-z0-9+/]{22}==$/.test(md5)) throw s3Error("InvalidDigest");
    computed.set("content-md5", openHash("md5"));
    expected.set("content-md5", md5);
  }
  for (const name of ["x-amz-checksum-crc32", "x-amz-checksum-sha1", "x-amz-checksum-sha256"]) {
    // Not of the query: signers of addresses put the checksum of no body there.
    const value = request.headers[name];
    if (typeof value === "string") expected.set(name, value);
    if (value !== undefined || isTrailer(request, name)) computed.set(name, openChecksum(name));
  }
  return { computed, expected };
}

function isTrailer({ headers }: S3Request, name: string): boolean {
  return String(headers["x-amz-trailer"] ?? "")
    .split(",")
    .some((each) => each.trim().toLowerCase() === name);
}

function openChecksum(name: string): Checksum {
  const [, algorithm = ""] = CHECKSUM.exec(name)!;
  if (algorithm !== "crc32") return openHash(algorithm);
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
  { computed, expected }: Checks,
): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    for (const checksum of computed.values()) checksum.update(piece);
    yield piece;
  }
  if (announced !== null && bytes !== announced) throw s3Error("IncompleteBody");
  for (const [name, checksum] of computed) {
    if (checksum.digest() !== expected.get(name)) throw s3Error("BadDigest", `The content does not have this ${name}.`);
  }
}
