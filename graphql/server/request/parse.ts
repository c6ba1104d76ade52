import { type Caller, callerKey } from "#accounts/identity";
import { type BodyLimit, HttpError, methodNotAllowed } from "#http";
import { type AbortLike, runStepwise, type Stepwise, waitForLargeWorkSlot } from "#runtime/concurrency";
import { isJsonObject, parseJsonExactly, scanJson } from "#runtime/json";
import type { OperationVariables } from "../../documents/exact-numbers.ts";
import type { GraphqlHttpRequest } from "./http-messages.ts";

/** A parsed request: GraphQL over HTTP, section 5. */
export type GraphqlRequest = {
  readonly query: string | null;
  readonly operationName: string | null;
  readonly variables: OperationVariables;
  /** The variables with ExactNumbers where JavaScript numbers have lost digits. */
  readonly parseExactVariables: () => OperationVariables;
  readonly extensions: Readonly<Record<string, unknown>>;
  /** The id of a persisted operation. */
  readonly documentId: string | null;
};

export const GRAPHQL_METHODS = "GET, HEAD, OPTIONS, POST";

/** Method, URL and body → the text of a document, the name of an operation, and variables. */
export async function parse(
  request: GraphqlHttpRequest,
  { claims }: Caller,
  bodyLimit: BodyLimit,
): Promise<GraphqlRequest> {
  switch (request.method) {
    case "GET":
    case "HEAD":
      return parseQueryString(request.rawQuery);
    case "POST":
      checkContentType(request.headers["content-type"]);
      return parseBody(await request.readBody(bodyLimit), {
        owner: () => callerKey(claims, () => request.connection().address),
        signal: request.signal,
      });
    default:
      throw methodNotAllowed(request.method, GRAPHQL_METHODS);
  }
}

/** Bounds for parsing a body quickly. Query strings are short and have no such limits. */
const MAX_BODY_VALUES = 50_000;
const MAX_BODY_LEVELS = 1_000;

/** Larger bodies are parsed one after the other per client. */
export const LARGE_BODY_BYTES = 16 * 1024;

type BodyScan = "invalid" | "too deep" | "too many values" | "fit";

/** Counts the values and levels of a body before it is parsed. */
export function* scanBody(body: Buffer): Stepwise<BodyScan> {
  const scan = yield* scanJson(body, null, MAX_BODY_LEVELS);
  if (scan.kind === "too deep" || scan.kind === "invalid") return scan.kind;
  return scan.values > MAX_BODY_VALUES ? "too many values" : "fit";
}

const SCAN_MESSAGES = {
  invalid: "The body is not valid JSON.",
  "too deep": `The body may have at most ${MAX_BODY_LEVELS} levels.`,
  "too many values": `The body may have at most ${MAX_BODY_VALUES} values.`,
} as const;

/** Parses the body of a POST request. A large one waits for its client's turn. */
async function parseBody(
  body: Buffer,
  { owner, signal }: { readonly owner: () => string; readonly signal: AbortLike },
): Promise<GraphqlRequest> {
  // A shorter body exceeds neither limit, and JSON.parse reports invalid JSON.
  if (body.length > MAX_BODY_LEVELS) {
    const scan = await runStepwise(scanBody(body), signal);
    if (scan !== "fit") throw malformedRequest(SCAN_MESSAGES[scan]);
  }
  if (body.length > LARGE_BODY_BYTES) {
    await waitForLargeWorkSlot(owner());
    if (signal.aborted) throw signal.reason;
  }
  const text = body.toString("utf8");
  return parseParameters(parseJson(text, SCAN_MESSAGES.invalid), () => parseJsonExactly(text));
}

/** `query=%7Bme%7Bid%7D%7D&variables=%7B%7D` */
function parseQueryString(rawQuery: string): GraphqlRequest {
  const parameters = new URLSearchParams(rawQuery);
  const parseParameter = (name: string) => {
    const text = parameters.get(name);
    return text === null ? null : parseJson(text, `${name} is not valid JSON.`);
  };
  const body = {
    query: parameters.get("query"),
    // An empty name in a query string, unlike in a body, means no name.
    operationName: parameters.get("operationName") || null,
    documentId: parameters.get("documentId"),
    variables: parseParameter("variables"),
    extensions: parseParameter("extensions"),
  };
  return parseParameters(body, () => ({ variables: parseJsonExactly(parameters.get("variables") ?? "null") }));
}

/** `parseAgain` parses the same body with ExactNumbers. */
export function parseParameters(body: unknown, parseAgain: () => unknown): GraphqlRequest {
  if (Array.isArray(body)) throw malformedRequest("Send one operation per request: batches are not supported.");
  if (!isJsonObject(body)) throw malformedRequest("Send a JSON object with the operation in query.");
  return {
    query: stringIn(body, "query"),
    operationName: stringIn(body, "operationName"),
    variables: objectIn(body, "variables"),
    extensions: objectIn(body, "extensions"),
    documentId: stringIn(body, "documentId"),
    parseExactVariables: () => objectIn(parseExactAgain(parseAgain), "variables"),
  };
}

/** The exact parser recurses per level. */
function parseExactAgain(parseAgain: () => unknown): OperationVariables {
  try {
    return parseAgain() as OperationVariables;
  } catch (cause) {
    throw malformedRequest("The variables have too many levels.", cause);
  }
}

/**
 * Refuses other types: any site can make a browser send forms and plain text with the user's cookies without a CORS preflight (simple
 * requests).
 */
function checkContentType(contentType: string | undefined): void {
  if (contentType === "application/json") return;
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().replaceAll(/[\s"]/g, "").split(";");
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  if (type === "application/json" && (charset === undefined || /^charset=utf-?8$/.test(charset))) return;
  throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "Send the operation as application/json in UTF-8.", {
    headers: { "Accept-Post": "application/json" },
  });
}

function parseJson(text: string, message: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformedRequest(message, cause);
  }
}

function stringIn(body: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = body[name] ?? null;
  if (value !== null && typeof value !== "string") throw malformedRequest(`${name} must be a string.`);
  return value;
}

function objectIn(body: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = body[name] ?? {};
  if (!isJsonObject(value)) throw malformedRequest(`${name} must be an object.`);
  return value;
}

function malformedRequest(message: string, cause?: unknown): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", message, { cause });
}
