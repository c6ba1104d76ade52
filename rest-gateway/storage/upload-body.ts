import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import type { DraftFile, FileStore } from "#files";
import { HttpError, type MatchedRequest } from "#http";
import { findUnstorableInJson, isJsonObject } from "#runtime/json";
import { namesSeveralTypes, OPAQUE_TYPE } from "./media-type.ts";
import { isHeaderText, type ObjectMetadata } from "./object-rows.ts";
import { explainStoreError, storageError } from "./storage-error.ts";
import { writeForm } from "./write-form.ts";

/** The permitted types and sizes of an upload. */
export type UploadTerms = {
  readonly maxBytes: number;
  /** The types; null for all. */
  readonly types: readonly string[] | null;
};

export type ReceivedFile = {
  readonly draft: DraftFile;
  readonly metadata: ObjectMetadata;
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
};

export const NO_CACHE = "no-cache";
const FORM_TYPE = /^multipart\/form-data\b/i;
const FORM_LIMITS = { fields: 10, fieldNameSize: 100, fieldSize: 1024 * 1024, files: 1, parts: 12, headerPairs: 50 };
const MAX_USER_METADATA_BYTES = 1024 * 1024;

/** Writes the body to the file store: a form with one file, or the content itself. */
export function receiveFile(request: MatchedRequest, terms: UploadTerms, store: FileStore): Promise<ReceivedFile> {
  return isForm(request) ? receiveForm(request, terms, store) : receiveContent(request, terms, store);
}

export function isForm({ headers }: Pick<MatchedRequest, "headers">): boolean {
  return FORM_TYPE.test(headers["content-type"] ?? "");
}

async function receiveContent(request: MatchedRequest, terms: UploadTerms, store: FileStore): Promise<ReceivedFile> {
  const { headers } = request;
  const type = headers["content-type"] ?? OPAQUE_TYPE;
  checkType(type, terms);
  if (Number(headers["content-length"]) > terms.maxBytes) throw storageError("EntityTooLarge");
  const userMetadata = readUserMetadataHeader(request) ?? {};
  const sent = checkHeaders({
    mimetype: type,
    cacheControl: headers["cache-control"] ?? NO_CACHE,
    contentEncoding: headers["content-encoding"] || undefined,
  });
  const draft = await writeDraft(store, request.streamBody(), terms);
  return { draft, metadata: describe(draft, sent), userMetadata };
}

async function receiveForm(request: MatchedRequest, terms: UploadTerms, store: FileStore): Promise<ReceivedFile> {
  const fields = new Map<string, string>();
  const stop = new AbortController();
  let file: FormFile | null = null;
  const form = openForm(request.headers["content-type"]!);
  form.on("field", (name, value) => fields.set(name, value));
  form.on("file", (_field, content, _name, _encoding, partType) => {
    const type = fields.get("contentType") ?? partType;
    const draft = file ? null : receivePart(content, type, terms, store);
    if (!draft) return void content.resume();
    // A form may break before anybody reads its file.
    content.on("error", () => {});
    file = { content, draft, type };
    // The rest of a refused file is not parsed.
    draft.catch((error) => stop.abort(error));
  });
  const failure = await writeForm(request.streamBody(), form, stop.signal).then(
    () => null,
    (error: unknown) => error,
  );
  const received = file as FormFile | null;
  if (!received) throw failure ? invalidForm(failure) : storageError("InvalidRequest", "No content provided");
  if (failure) {
    const refusal = stop.signal.aborted ? stop.signal.reason : invalidForm(failure);
    // The draft would wait for the rest of the content.
    received.content.destroy();
    await received.draft.then(
      (draft) => draft.discard(),
      () => {},
    );
    throw refusal;
  }
  const draft = await received.draft;
  try {
    const seconds = fields.get("cacheControl");
    const about = fields.get("metadata") ?? fields.get("userMetadata");
    const cacheControl = seconds ? `max-age=${seconds}` : NO_CACHE;
    // The field may have come after the file.
    const type = fields.get("contentType") ?? received.type;
    checkType(type, terms);
    const contentEncoding = fields.get("contentEncoding") || undefined;
    const metadata = describe(draft, checkHeaders({ mimetype: type, cacheControl, contentEncoding }));
    return { draft, metadata, userMetadata: (about === undefined ? null : readUserMetadata(about)) ?? {} };
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

type FormFile = { readonly content: Readable; readonly draft: Promise<DraftFile>; readonly type: string };

function openForm(contentType: string) {
  try {
    return new Busboy({ headers: { "content-type": contentType } as BusboyHeaders, limits: FORM_LIMITS });
  } catch (error) {
    throw invalidForm(error);
  }
}

async function receivePart(content: Readable, type: string, terms: UploadTerms, store: FileStore): Promise<DraftFile> {
  checkType(type, terms);
  return writeDraft(store, content, terms);
}

function invalidForm(cause: unknown) {
  // The client has sent nothing for a while, or is gone.
  if (cause instanceof HttpError) return cause;
  return storageError("InvalidRequest", "The form could not be read", { cause });
}

async function writeDraft(store: FileStore, content: AsyncIterable<Buffer>, { maxBytes }: UploadTerms) {
  try {
    return await store.draft(content, maxBytes);
  } catch (error) {
    throw explainStoreError(error);
  }
}

/** Checks the type, which must be one: `image/*` accepts `image/png`. */
export function checkType(type: string, { types }: UploadTerms): void {
  if (namesSeveralTypes(type)) throw storageError("InvalidMimeType", `mime type ${type} is a list of types; send one`);
  if (types === null) return;
  const essence = type.split(";", 1)[0]!.trim().toLowerCase();
  const [kind] = essence.split("/", 1);
  const isAccepted = types.some((each) => {
    const accepted = each.toLowerCase();
    return accepted === "*/*" || accepted === essence || accepted === `${kind}/*` || each === type;
  });
  if (!isAccepted) throw storageError("InvalidMimeType", `mime type ${type} is not supported`);
}

/** Throws unless the values can be headers of responses. */
function checkHeaders(sent: SentHeaders): SentHeaders {
  for (const value of Object.values(sent)) if (value !== undefined) singleLine(value);
  return sent;
}

type SentHeaders = Pick<ObjectMetadata, "mimetype" | "cacheControl" | "contentEncoding">;

export function describe({ hash, bytes }: DraftFile, sent: SentHeaders): ObjectMetadata {
  return {
    eTag: `"${hash}"`,
    size: bytes,
    ...sent,
    lastModified: new Date().toISOString(),
    contentLength: bytes,
    httpStatusCode: 200,
  };
}

export function singleLine(text: string): string {
  if (isHeaderText(text)) return text;
  throw storageError(
    "InvalidRequest",
    "contentType, cacheControl and contentEncoding must have printable ASCII characters only",
  );
}

/** Reads `x-metadata`, JSON as base64; null if it is missing. */
export function readUserMetadataHeader({
  headers,
}: Pick<MatchedRequest, "headers">): ReturnType<typeof readUserMetadata> {
  const encoded = headers["x-metadata"];
  return typeof encoded === "string" ? readUserMetadata(Buffer.from(encoded, "base64").toString("utf8")) : null;
}

export function readUserMetadata(text: string): Readonly<Record<string, unknown>> | null {
  if (Buffer.byteLength(text) > MAX_USER_METADATA_BYTES)
    throw storageError("EntityTooLarge", "The user_metadata exceeded the maximum allowed size");
  if (findUnstorableInJson(text) !== null)
    throw storageError("InvalidRequest", "metadata must not contain NUL or lone surrogates");
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    // Invalid JSON is ignored, as in Supabase's service.
    return null;
  }
}
