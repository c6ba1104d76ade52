import { type GatewayRequest, type GatewayResponse, HttpError } from "#http";
import { runStepwise } from "#runtime/concurrency";
import {
  escapePointer,
  isExactJsonObject,
  isExactNumber,
  isJsonObject,
  type JsonMember,
  type JsonRecord,
  parseJsonExactly,
  readJsonRecords,
} from "#runtime/json";

const METHODS: ReadonlySet<unknown> = new Set(["GET", "POST", "PATCH", "PUT", "DELETE"]);
const MEMBERS: readonly string[] = ["method", "path", "headers", "body"];
/** The headers that a part may have; `If-*` are allowed as well. */
const PART_HEADERS: ReadonlySet<string> = new Set([
  ...["accept", "accept-profile", "content-profile", "content-type", "prefer", "range", "range-unit"],
]);
const JSON_TYPE = /^[^;]*\bjson\s*(;|$)/i;
/** `3#/0/id`: a JSON Pointer (RFC 6901) into the response of part 3. */
const REFERENCE = /^(\d{1,6})#((?:\/.*)?)$/s;
/** Characters that a request line and a header field may not contain (RFC 9112). */
const NOT_IN_PATH = /\p{Cc}/u;
const NOT_IN_HEADER = /[^\P{Cc}\t]/u;
/** The text without which a body is not searched for references. */
const REFERENCE_NAME = '"$ref"';
const QUOTE = 0x22;
const MAX_LEVELS = 1_000;
/** The limit of a path, and of all headers of a part: the same as for a request by itself. */
const MAX_HEAD_BYTES = 16_384;
/** The limit of a body with references, of a referenced response, and of all values of the references in a body. */
const MAX_REFERENCE_BYTES = 2 ** 20;
const NO_BODY = Buffer.alloc(0);

/** One request of a batch, whose references are not resolved yet. */
export type BatchPart = {
  readonly method: string;
  readonly path: readonly (string | Reference)[];
  /** The headers by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | { readonly value: unknown };
  /** The index of the latest part that this part refers to; -1 if there is none. */
  readonly lastReference: number;
};

type Reference = { readonly part: number; readonly pointer: readonly string[] };

/** Returns the parsed body of a part's response. */
type ReadPartBody = (index: number) => unknown;

/** Thrown with the index of the part that failed; null if the error concerns the whole batch. */
export class BatchFailure extends Error {
  override name = "BatchFailure";
  readonly index: number | null;

  constructor(index: number | null, cause: unknown) {
    super("the batch failed", { cause });
    this.index = index;
  }
}

/** Reads a list of parts. Throws a BatchFailure for a part that is malformed, and an HttpError for the list. */
export async function readBatchParts(
  list: Buffer,
  maxParts: number,
  request: Pick<GatewayRequest, "signal">,
): Promise<readonly BatchPart[]> {
  const limits = { maxRecords: maxParts, maxMembers: MEMBERS.length, maxLevels: Number.POSITIVE_INFINITY };
  const found = await runStepwise(readJsonRecords(list, limits), request.signal);
  if (found.kind === "invalid") throw invalidBatch("The batch is not valid JSON.");
  if (found.kind !== "list") throw invalidBatch("The batch is not a list of requests.", PART_HINT);
  if (found.count > maxParts) throw tooManyParts(maxParts);
  if (found.count === 0) throw invalidBatch("The batch is empty.", PART_HINT);
  return found.records.map((record, index) => {
    try {
      return readPart(record, index);
    } catch (error) {
      throw new BatchFailure(index, error);
    }
  });
}

const PART_HINT = 'A request is an object such as {"method": "POST", "path": "/orders", "headers": {}, "body": {}}.';

function readPart(record: JsonRecord, index: number): BatchPart {
  const members = record.members();
  const unknown = [...members.keys()].find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) throw invalidBatch(`A request of a batch has no member "${unknown}".`, PART_HINT);
  const method = members.get("method")?.value;
  if (!METHODS.has(method)) {
    throw invalidBatch("The method of a request of a batch is GET, POST, PATCH, PUT or DELETE.", PART_HINT);
  }
  for (const name of ["path", "headers"]) {
    if ((members.get(name)?.bytes.length ?? 0) > MAX_HEAD_BYTES) throw headTooLarge(name);
  }
  const headers = readHeaders(members.get("headers")?.value ?? {});
  const path = readPath(members.get("path")?.value, index);
  const { body, references } = readBody(members.get("body"), headers["content-type"], index);
  const ofPath = path.flatMap((piece) => (typeof piece === "string" ? [] : piece.part));
  return { method: String(method), path, headers, body, lastReference: Math.max(-1, ...ofPath, ...references) };
}

function readHeaders(value: unknown): Readonly<Record<string, string>> {
  if (!isJsonObject(value)) throw invalidBatch("The headers of a request of a batch are an object.", PART_HINT);
  const entries = Object.entries(value).map(([name, text]): [string, string] => {
    const known = name.toLowerCase();
    if (!PART_HEADERS.has(known) && !/^if-[a-z-]+$/.test(known)) {
      throw invalidBatch(`The header "${name}" cannot be sent in a request of a batch.`, "Send it with the batch.");
    }
    if (typeof text !== "string") throw invalidBatch(`The value of the header "${name}" is not a string.`);
    if (NOT_IN_HEADER.test(text)) throw invalidBatch(`The header "${name}" contains a control character.`);
    checkWellFormed(text, `The header "${name}"`);
    return [known, text];
  });
  const headers = Object.fromEntries(entries);
  if (/(^|,)\s*(respond-async|tx\s*=)/i.test(headers.prefer ?? "")) {
    throw invalidBatch("Prefer: tx and respond-async concern the whole batch.", "Send Prefer: tx with the batch.");
  }
  return headers;
}

function readPath(value: unknown, index: number): readonly (string | Reference)[] {
  const pieces = typeof value === "string" ? [value] : Array.isArray(value) ? value : [];
  const path = pieces.map((piece: unknown) => {
    const read = typeof piece === "string" ? piece : toReference(piece, index);
    if (read === null) throw invalidBatch("A path is a string, or a list of strings and references.", PART_HINT);
    return read;
  });
  if (typeof path[0] !== "string" || !path[0].startsWith("/")) throw invalidBatch("A path begins with /.", PART_HINT);
  for (const piece of path) {
    if (typeof piece !== "string") continue;
    if (/[?&]api_?key=/i.test(piece)) {
      throw invalidBatch("A request of a batch has no API key of its own.", "Send it with the batch.");
    }
    if (NOT_IN_PATH.test(piece)) throw invalidBatch("A path contains a control character.", PERCENT_HINT);
    checkWellFormed(piece, "A path");
  }
  return path;
}

const PERCENT_HINT = "Percent-encode it, such as %0A.";

/** Throws for a lone surrogate, which has no form in UTF-8: it would become U+FFFD. */
function checkWellFormed(text: string, subject: string): void {
  if (!text.isWellFormed()) throw invalidBatch(`${subject} contains a lone surrogate.`);
}

type ReadBody = { readonly body: BatchPart["body"]; readonly references: readonly number[] };

/** Reads a body. JSON is passed on unparsed, with all digits of numbers, unless it has references. */
function readBody(member: JsonMember | undefined, contentType: string | undefined, index: number): ReadBody {
  if (!member) return { body: NO_BODY, references: [] };
  const { bytes } = member;
  if (contentType !== undefined && !JSON_TYPE.test(contentType)) {
    const value = bytes[0] === QUOTE ? member.value : null;
    if (typeof value !== "string") throw invalidBatch(`A body of the type ${contentType} is a string.`);
    checkWellFormed(value, "A body");
    return { body: Buffer.from(value), references: [] };
  }
  if (!bytes.includes(REFERENCE_NAME)) return { body: bytes, references: [] };
  if (bytes.length > MAX_REFERENCE_BYTES) throw referencesTooLarge("A body with references");
  const value = parseBounded(() => member.value);
  const references: number[] = [];
  mapReferences(value, index, (reference) => references.push(reference.part));
  return references.length > 0 ? { body: { value }, references } : { body: bytes, references };
}

/** Parses a reference; null for any other value. Throws unless the part is an earlier one. */
function toReference(value: unknown, index: number): Reference | null {
  if (!isExactJsonObject(value)) return null;
  const names = Object.keys(value);
  const text = names.length === 1 && names[0] === "$ref" ? value.$ref : null;
  const match = typeof text === "string" ? REFERENCE.exec(text) : null;
  if (!match) return null;
  const part = Number(match[1]);
  if (part >= index) throw invalidBatch(`"${text}" does not refer to an earlier request of the batch.`);
  const pointer = match[2]!.split("/").slice(1);
  return { part, pointer: pointer.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")) };
}

function mapReferences(value: unknown, index: number, resolve: (reference: Reference) => unknown, level = 0): unknown {
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  if (level > MAX_LEVELS) throw tooDeep();
  if (Array.isArray(value)) return value.map((item) => mapReferences(item, index, resolve, level + 1));
  const reference = toReference(value, index);
  if (reference) return resolve(reference);
  const entries = Object.entries(value).map(([name, item]) => [name, mapReferences(item, index, resolve, level + 1)]);
  return Object.fromEntries(entries);
}

/** Returns the path of a part, with references replaced by percent-encoded values. */
export function resolvePath({ path }: BatchPart, bodyOf: ReadPartBody): string {
  let resolved = "";
  for (const piece of path) {
    const text = typeof piece === "string" ? piece : toPathText(find(piece, bodyOf), piece);
    // A short reference may stand for a long value, many times, so each is checked before it is encoded.
    if (resolved.length + text.length > MAX_HEAD_BYTES) throw headTooLarge("path");
    resolved += typeof piece === "string" ? piece : encodeURIComponent(text);
  }
  if (resolved.length > MAX_HEAD_BYTES) throw headTooLarge("path");
  return resolved;
}

export function resolveBody({ body }: BatchPart, index: number, bodyOf: ReadPartBody): Buffer {
  if (Buffer.isBuffer(body)) return body;
  let length = 0;
  const resolve = (reference: Reference): unknown => {
    const value = find(reference, bodyOf);
    length += JSON.stringify(value).length;
    // A short reference may have a long value, and occur many times.
    if (length > MAX_REFERENCE_BYTES) throw referencesTooLarge("The values of all references in a body");
    return value;
  };
  return Buffer.from(JSON.stringify(mapReferences(body.value, index, resolve)));
}

function toPathText(value: unknown, reference: Reference): string {
  if (isExactNumber(value)) return value.rawJSON;
  if (typeof value === "object") {
    const found = value === null ? "null" : "not a text, number or boolean";
    throw unknownReference(reference, `The value is ${found}, which a path cannot contain.`);
  }
  const text = String(value);
  if (!text.isWellFormed()) throw unknownReference(reference, "The value contains a lone surrogate.");
  return text;
}

function find(reference: Reference, bodyOf: ReadPartBody): unknown {
  let value = bodyOf(reference.part);
  for (const name of reference.pointer) {
    const isMember = typeof value === "object" && value !== null && !isExactNumber(value) && Object.hasOwn(value, name);
    value =
      isMember && !(Array.isArray(value) && name === "length") ? (value as Record<string, unknown>)[name] : undefined;
    if (value === undefined) throw unknownReference(reference, "The response has no such value.");
  }
  if (value === undefined) throw unknownReference(reference, "The response has no JSON body.");
  return value;
}

function unknownReference({ part, pointer }: Reference, details: string): HttpError {
  const text = [`${part}#`, ...pointer.map(escapePointer)].join("/");
  return new HttpError(400, "UNKNOWN_REFERENCE", `The reference "${text}" cannot be resolved.`, {
    details,
    hint: "To refer to rows that a request writes, send Prefer: return=representation with it.",
  });
}

/** Returns the parsed body of a response; undefined if it is not JSON. */
export function parsePartBody({ headers, body }: GatewayResponse): unknown {
  if (body === null || !isJsonType(headers["Content-Type"])) return undefined;
  if (body.length > MAX_REFERENCE_BYTES) throw referencesTooLarge("A response that is referred to");
  return parseBounded(() => parseJsonExactly(String(body)));
}

export function isJsonType(type: unknown): boolean {
  return typeof type === "string" && JSON_TYPE.test(type);
}

export function invalidBatch(message: string, hint: string | null = null): HttpError {
  return new HttpError(400, "INVALID_BATCH", message, { hint });
}

/** Parses within a limit of levels, because parsing with all digits is recursive. */
function parseBounded(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    throw error instanceof RangeError ? tooDeep() : error;
  }
}

function tooDeep(): HttpError {
  return invalidBatch(`A body with references, and a response that is referred to, have at most ${MAX_LEVELS} levels.`);
}

function headTooLarge(name: string): HttpError {
  return invalidBatch(`The ${name} of a request of a batch has at most ${MAX_HEAD_BYTES} bytes.`);
}

function referencesTooLarge(subject: string): HttpError {
  return invalidBatch(`${subject} may have at most ${MAX_REFERENCE_BYTES} bytes.`, "Request less with select.");
}

function tooManyParts(max: number): HttpError {
  return new HttpError(413, "BATCH_TOO_LARGE", `A batch has at most ${max} requests.`, {
    hint: "Send several batches, or several rows in one request.",
  });
}
