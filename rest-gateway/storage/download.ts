import parseRange from "range-parser";
import type { BytePart, FileStore } from "#files";
import { type BodyStream, type GatewayResponse, type MatchedRequest, matchesTag, type ResponseBody } from "#http";
import { OPAQUE_TYPE, readMediaType } from "./media-type.ts";
import type { ObjectRow } from "./object-rows.ts";
import { findSigned } from "./signed-urls.ts";
import { storageError } from "./storage-error.ts";
import { addressOf, type StorageHandler, type StorageRoutes, type StorageServices } from "./storage-request.ts";

export function downloadRoutes({
  store,
  ...signing
}: Pick<StorageServices, "store" | "keys" | "signers">): StorageRoutes {
  const send = (request: MatchedRequest, row: ObjectRow, options: SendOptions) =>
    sendObject(request, row, store, (bytes) => chooseResponse(request, row, bytes, options));
  const asCaller: StorageHandler = async (request) => {
    const address = addressOf(request);
    const row = await request.rows.find(address).catch((error) => {
      // Everybody may read the objects of a public bucket.
      return request.rows.findPublic(address).catch(() => {
        throw error;
      });
    });
    return send(request, row, { cache: "private" });
  };
  return {
    "GET /object/public/{bucket}/{path*}": async (request) =>
      send(request, await request.rows.findPublic(addressOf(request)), { cache: "public" }),
    "GET /object/authenticated/{bucket}/{path*}": async (request) =>
      send(request, await request.rows.find(addressOf(request)), { cache: "private" }),
    "GET /object/sign/{bucket}/{path*}": async (request) => {
      const { row, signature } = await findSigned("storage:download", request, signing);
      return send(request, row, { cache: "private", expires: signature.exp });
    },
    "GET /object/{bucket}/{path*}": asCaller,
  };
}

export type SendOptions = {
  /** `public` if shared caches may keep the response. */
  readonly cache: "public" | "private";
  /** The time when the address expires, in seconds since 1970. */
  readonly expires?: number;
};

/** The part of a content that is sent. */
type ChosenPart = {
  readonly status: number;
  /** The part; null for headers only. */
  readonly part: BytePart | null;
  readonly headers: Readonly<Record<string, string>>;
};

export async function sendObject(
  request: MatchedRequest,
  row: ObjectRow,
  store: FileStore,
  choose: (bytes: number) => ChosenPart,
): Promise<GatewayResponse<ResponseBody>> {
  const file = row.content === null ? null : await store.open(row.content);
  if (!file) throw storageError("NoSuchKey");
  try {
    const { status, part, headers } = choose(file.bytes);
    if (part === null) {
      await file.close();
      return { status, headers, body: null };
    }
    const bodyLength = part.end - part.start + 1;
    if (request.method === "HEAD") {
      await file.close();
      return { status, headers, bodyLength, body: headOnly() };
    }
    return { status, headers, bodyLength, body: await file.readChunks(part) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

function chooseResponse(request: MatchedRequest, row: ObjectRow, bytes: number, options: SendOptions): ChosenPart {
  const tag = `"${row.content}"`;
  const common = { ETag: tag, ...cacheHeaders(row, options) };
  if (isUnchanged(request, row, tag)) return { status: 304, part: null, headers: common };
  const { mimetype = OPAQUE_TYPE } = row.metadata ?? {};
  const described = { ...common, ...sentHeaders(row), ...contentHeaders(mimetype), ...downloadHeaders(request) };
  return selectPart(request, tag, bytes, described);
}

/** Returns the range that the request selects, or all. */
export function selectPart(
  { headers }: MatchedRequest,
  tag: string,
  bytes: number,
  described: Readonly<Record<string, string>>,
): ChosenPart {
  const range = headers["if-range"] === undefined || headers["if-range"] === tag ? headers.range : undefined;
  const parts = range === undefined ? -2 : parseRange(bytes, withinFile(range, bytes));
  if (parts === -1) {
    throw storageError("InvalidRange").withHeaders({ "Content-Range": `bytes */${bytes}` });
  }
  if (parts === -2 || parts.type !== "bytes" || parts.length !== 1) {
    const part: BytePart = { start: 0, end: bytes - 1 };
    return { status: 200, part, headers: described };
  }
  const { start, end } = parts[0]!;
  const contentRange = { "Content-Range": `bytes ${start}-${end}/${bytes}` };
  return { status: 206, part: { start, end }, headers: { ...described, ...contentRange } };
}

/** The last bytes of a file that has fewer are all of it (RFC 9110 §14.1.2); the library refuses such a range. */
function withinFile(range: string, bytes: number): string {
  const count = /^bytes=-(\d+)$/.exec(range)?.[1];
  return bytes > 0 && Number(count) > bytes ? "bytes=0-" : range;
}

function isUnchanged({ headers }: MatchedRequest, { updated_at }: ObjectRow, tag: string): boolean {
  if (headers["if-none-match"] !== undefined) return matchesTag(headers["if-none-match"], tag);
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return Math.floor(Date.parse(updated_at) / 1000) * 1000 <= since;
}

export function cacheHeaders(
  { metadata, updated_at }: ObjectRow,
  { cache, expires }: SendOptions,
): Record<string, string> {
  const own = metadata?.cacheControl ?? "no-cache";
  const lastModified = { "Last-Modified": new Date(updated_at).toUTCString() };
  if (expires !== undefined)
    return { ...lastModified, Expires: new Date(expires * 1000).toUTCString(), "Cache-Control": "private" };
  return { ...lastModified, "Cache-Control": cache === "public" ? `public, ${own}` : `private, ${own}` };
}

/** Types of which no browser runs a script with the rights of this site. */
const INERT =
  /^(?:(?:image|audio|video|font)\/(?!.*(?:xml|svg))|text\/(?:plain|csv|css)$|application\/(?:octet-stream|pdf|json|zip|gzip)$)/i;

export function contentHeaders(sent: string): Record<string, string> {
  const { header, essence } = readMediaType(sent);
  return {
    // A page is shown as its source, as in Supabase's service.
    "Content-Type": /html/i.test(essence) ? "text/plain" : header,
    "Accept-Ranges": "bytes",
    "X-Content-Type-Options": "nosniff",
    // Pages of other sites may show the files.
    "Cross-Origin-Resource-Policy": "cross-origin",
    ...(!INERT.test(essence) && {
      "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }),
  };
}

/** Returns the headers that a client of S3 has set. */
export function sentHeaders({ metadata }: Pick<ObjectRow, "metadata">): Record<string, string> {
  const { contentDisposition, contentEncoding, contentLanguage } = metadata ?? {};
  return {
    ...(contentDisposition && { "Content-Disposition": contentDisposition }),
    ...(contentEncoding && { "Content-Encoding": contentEncoding }),
    ...(contentLanguage && { "Content-Language": contentLanguage }),
  };
}

export function downloadHeaders({ query }: MatchedRequest): Record<string, string> {
  const download = query.get("download");
  return download === null ? {} : { "Content-Disposition": dispositionOf(download) };
}

function dispositionOf(name: string): string {
  if (name === "") return "attachment;";
  const encoded = encodeURIComponent(name.toWellFormed());
  return `attachment; filename=${encoded}; filename*=UTF-8''${encoded};`;
}

/** A body for HEAD: the writer sends the headers, with the whole length, and reads nothing. */
export async function* headOnly(): BodyStream {}
