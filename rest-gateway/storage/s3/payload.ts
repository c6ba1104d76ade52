import { createHash } from "node:crypto";
import { decodeAwsChunked } from "./aws-chunked.ts";
import { badDigest, CHECKSUM_PREFIX, CHECKSUMS, CONTENT_MD5 } from "./checksums.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";

/** The body of a request. */
export type Payload = {
  /** The content, which throws at its end unless it has the announced length and checksums. */
  readonly content: AsyncIterable<Buffer>;
  /** Throws unless the content is the one that was signed. */
  checkHash(sha256: string): void;
};

type CheckedPayload = Payload & {
  /** Returns the checksums that were compared, as headers of the response. */
  checksums(): Record<string, string>;
};

export function openPayload(request: S3Request, maxBytes: number): CheckedPayload {
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
    checksums() {
      const compared = [...checks.expected].filter(([name]) => name.startsWith(CHECKSUM_PREFIX));
      return Object.fromEntries(compared);
    },
    checkHash(sha256) {
      if (payload.kind === "digest" && payload.sha256 !== sha256) throw s3Error("XAmzContentSHA256Mismatch");
    },
  };
}

/** Reads a small body as a whole. */
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
  readonly computed: ReadonlySet<string>;
  readonly expected: Map<string, string>;
  /** Announced trailers that have not arrived. */
  readonly awaited: Set<string>;
};

/** Opens the checksums that the headers contain or announce. */
function openChecks(request: S3Request): Checks {
  const computed = new Set<string>();
  const expected = new Map<string, string>();
  const awaited = announcedTrailers(request);
  for (const name of CHECKSUMS.keys()) {
    // The query is not read, because signers of addresses put the checksum of an empty body there.
    const value = request.headers[name];
    if (typeof value === "string") expectChecksum(expected, name, value, "header");
    if (value !== undefined || awaited.has(name)) computed.add(name);
  }
  if ([...computed].filter((name) => name !== CONTENT_MD5).length > 1)
    throw s3Error(
      "InvalidRequest",
      "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
    );
  return { computed, expected, awaited };
}

function announcedTrailers({ headers, payload }: S3Request): Set<string> {
  const names = String(headers["x-amz-trailer"] ?? "").split(",");
  const announced = new Set(names.map((name) => name.trim().toLowerCase()).filter((name) => name !== ""));
  if (announced.size > 0 && payload.kind !== "chunks") throw s3Error("MalformedTrailerError");
  const unknown = [...announced].find((name) => name.startsWith(CHECKSUM_PREFIX) && !CHECKSUMS.has(name));
  if (unknown !== undefined) throw s3Error("InvalidRequest", `The checksum algorithm of ${unknown} is not supported.`);
  return announced;
}

function expectChecksum(expected: Map<string, string>, name: string, value: string, place: string): void {
  const known = CHECKSUMS.get(name);
  const bytes = Buffer.from(value, "base64");
  if (known && (bytes.length !== known.bytes || bytes.toString("base64") !== value)) {
    if (name === CONTENT_MD5) throw s3Error("InvalidDigest");
    throw s3Error("InvalidRequest", `Value for ${name} ${place} is invalid.`);
  }
  expected.set(name, value);
}

async function* check(
  content: AsyncIterable<Buffer>,
  announced: number | null,
  { computed, expected, awaited }: Checks,
): AsyncGenerator<Buffer> {
  const opened = await Promise.all(
    [...computed].map(async (name) => ({ name, checksum: await CHECKSUMS.get(name)!.open() })),
  );
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    for (const { checksum } of opened) checksum.update(piece);
    yield piece;
  }
  if (announced !== null && bytes !== announced) throw s3Error("IncompleteBody");
  if (awaited.size > 0) throw s3Error("MalformedTrailerError");
  for (const { name, checksum } of opened) {
    if (checksum.digest() !== expected.get(name)) throw badDigest(name);
  }
}
