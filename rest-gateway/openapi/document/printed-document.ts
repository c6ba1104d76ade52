import { createHash } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { createGunzip, createGzip, gunzip } from "node:zlib";
import { type BodyStream, type GatewayRequest, type GatewayResponse, type ResponseBody, readMediaRanges } from "#http";
import { isJsonObject } from "#runtime/json";

const MAX_BYTES = 64 * 1024 * 1024;
/** The maximum number of documents. Keys use memory too, and a request can name any selection of tables. */
const MAX_ENTRIES = 1_000;

/** The size above which a text is streamed. */
const MAX_HELD_BYTES = 1024 * 1024;

const inflate = promisify(gunzip);

/** The entries of an object that is too large for memory; each is created when it is written. */
type DocumentSection = () => Iterable<readonly [key: string, value: object]>;
export type OpenApiDocument = { readonly [key: string]: unknown };

/** A document, kept compressed to a sixtieth of its size. */
export type PrintedDocument = {
  readonly gzip: Buffer;
  /** The size of the text. */
  readonly bytes: number;
  /** The SHA-256 of the text in hexadecimal. */
  readonly digest: string;
};

const CHUNK_CHARACTERS = 65_536;
const SLICE_MS = 8;

/** Serializes and compresses a document section by section; other requests run in between. */
export async function printDocument(document: OpenApiDocument): Promise<PrintedDocument> {
  const gzip = createGzip();
  const compressed = buffer(gzip);
  const digest = createHash("sha256");
  let bytes = 0;
  const write = async (text: string): Promise<void> => {
    const chunk = Buffer.from(text);
    bytes += chunk.length;
    digest.update(chunk);
    if (!gzip.write(chunk)) await once(gzip, "drain");
  };
  try {
    let text = "";
    let pauseAt = performance.now() + SLICE_MS;
    for (const piece of documentPieces(document)) {
      text += piece;
      if (text.length > CHUNK_CHARACTERS) {
        await write(text);
        text = "";
      }
      if (performance.now() > pauseAt) {
        await nextTurn();
        pauseAt = performance.now() + SLICE_MS;
      }
    }
    await write(text);
  } catch (fault) {
    compressed.catch(() => {});
    gzip.destroy();
    throw fault;
  }
  gzip.end();
  return { gzip: await compressed, bytes, digest: digest.digest("hex") };
}

/** The document as a value. */
export async function readDocument({ gzip }: PrintedDocument): Promise<unknown> {
  return JSON.parse((await inflate(gzip)).toString());
}

/** Yields the JSON text of a document in pieces, one for each entry of a section. */
function* documentPieces(document: OpenApiDocument): Generator<string> {
  let before = "{";
  for (const [key, value] of Object.entries(document)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    before = ",";
    if (typeof value === "function") yield* sectionPieces(value as DocumentSection);
    else if (isJsonObject(value)) yield* documentPieces(value);
    else yield JSON.stringify(value);
  }
  yield before === "{" ? "{}" : "}";
}

function* sectionPieces(section: DocumentSection): Generator<string> {
  let before = "{";
  for (const [key, value] of section()) {
    yield `${before}${JSON.stringify(key)}:${JSON.stringify(value)}`;
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

type CachedDocument = { readonly catalogVersion: number; readonly document: Promise<PrintedDocument>; bytes: number };

/** A cache of compressed documents. Documents of an older catalog are dropped when a newer one appears. */
export class DocumentCache {
  readonly #entries = new Map<string, CachedDocument>();
  readonly #maxBytes: number;

  constructor({ maxBytes = MAX_BYTES }: { maxBytes?: number } = {}) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the document. Concurrent calls share one. */
  get(key: string, catalogVersion: number, make: () => Promise<PrintedDocument>): Promise<PrintedDocument> {
    const versioned = `${catalogVersion} ${key}`;
    const cached = this.#entries.get(versioned);
    if (cached) {
      // The last entry of the map is the most recently used one.
      this.#entries.delete(versioned);
      this.#entries.set(versioned, cached);
      return cached.document;
    }
    this.#forgetBefore(catalogVersion);
    const entry: CachedDocument = { catalogVersion, document: make(), bytes: 0 };
    this.#entries.set(versioned, entry);
    entry.document.then(
      ({ gzip }) => {
        entry.bytes = gzip.length;
        this.#makeRoom();
      },
      () => this.#entries.delete(versioned),
    );
    return entry.document;
  }

  get size(): number {
    return this.#entries.size;
  }

  #forgetBefore(catalogVersion: number): void {
    for (const [key, entry] of this.#entries) if (entry.catalogVersion < catalogVersion) this.#entries.delete(key);
  }

  /** Drops documents. The newest one stays even if it is too large: creating it for each request would cost more. */
  #makeRoom(): void {
    let bytes = 0;
    for (const entry of this.#entries.values()) bytes += entry.bytes;
    for (const [key, entry] of this.#entries) {
      const isFull = bytes > this.#maxBytes || this.#entries.size > MAX_ENTRIES;
      if (!isFull || this.#entries.size === 1) return;
      this.#entries.delete(key);
      bytes -= entry.bytes;
    }
  }
}

type DocumentHeaders = Readonly<Record<string, string>> & { readonly Vary: string };

/** Returns the document, compressed if the client accepts gzip; otherwise as text, streamed if it is large. */
export async function documentResponse(
  { gzip, bytes }: PrintedDocument,
  { headers: sent }: Pick<GatewayRequest, "headers">,
  ownHeaders: DocumentHeaders,
): Promise<GatewayResponse<ResponseBody>> {
  const headers = { ...ownHeaders, Vary: `${ownHeaders.Vary}, Accept-Encoding` };
  if (takesGzip(sent["accept-encoding"])) {
    return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body: gzip };
  }
  return { status: 200, headers, body: bytes > MAX_HELD_BYTES ? streamText(gzip) : await inflate(gzip) };
}

/** Returns true if the client accepts gzip. Accept-Encoding has the grammar of Accept: `gzip, br;q=0.5`. */
function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  const codings = readMediaRanges(String(acceptEncoding ?? ""));
  const named = codings.find(({ type }) => type.toLowerCase() === "gzip") ?? codings.find(({ type }) => type === "*");
  return named !== undefined && named.quality > 0;
}

async function* streamText(gzip: Buffer): BodyStream {
  const text = createGunzip();
  text.end(gzip);
  for await (const data of text) yield { data: data as Buffer, release: () => {} };
}
