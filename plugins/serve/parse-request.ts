import type { Abort } from "../../engine/abort.ts";
import { ApiError } from "../../engine/errors.ts";
import { parseExactly } from "../../engine/exact-json.ts";
import { scanJson } from "../../engine/json/scan.ts";
import { isJsonObject } from "../../engine/json-object.ts";
import { turnForLargeWork } from "../../engine/large-work.ts";
import { runStepwise, type Stepwise } from "../../engine/stepwise.ts";
import type { Variables } from "./exact-variables.ts";

/** What came in a request: GraphQL over HTTP, section 5. */
export type Sent = {
  readonly query: string | null;
  readonly operationName: string | null;
  readonly variables: Variables;
  /** The same, with ExactNumbers where those of JavaScript have lost digits. */
  readonly parseExactVariables: () => Variables;
  readonly extensions: Readonly<Record<string, unknown>>;
  /** The name of an operation that the server knows. */
  readonly documentId: string | null;
};

/** As much as is parsed in a moment, and as deep as anybody writes. An address, which is short, may have any of them. */
const MOST_VALUES = 50_000;
const MOST_LEVELS = 1_000;

/** Nearly all requests are shorter. */
export const LARGE_BYTES = 16 * 1024;

type BodyScan = "invalid" | "too deep" | "too many values" | "fit";

/** Counts what was sent before anything is made of it. */
export function* scanBody(body: Buffer): Stepwise<BodyScan> {
  const scan = yield* scanJson(body, null, MOST_LEVELS);
  if (scan.kind === "too deep" || scan.kind === "invalid") return scan.kind;
  return scan.values > MOST_VALUES ? "too many values" : "fit";
}

const REFUSALS = {
  invalid: "The body is no JSON.",
  "too deep": `The body may have at most ${MOST_LEVELS} levels.`,
  "too many values": `The body may have at most ${MOST_VALUES} values.`,
} as const;

/** The body of a POST request, whose sender's turn for large work is waited for where it is large. */
export async function parseBody(
  body: Buffer,
  { owner, signal }: { readonly owner: () => string; readonly signal: Abort },
): Promise<Sent> {
  const scan = await runStepwise(scanBody(body), signal);
  if (scan !== "fit") throw malformed(REFUSALS[scan]);
  if (body.length > LARGE_BYTES) {
    await turnForLargeWork(owner());
    if (signal.aborted) throw signal.reason;
  }
  const text = body.toString("utf8");
  return parseParameters(parseJson(text, REFUSALS.invalid), () => parseExactly(text));
}

/** `query=%7Bme%7Bid%7D%7D&variables=%7B%7D` */
export function parseQueryString(rawQuery: string): Sent {
  const given = new URLSearchParams(rawQuery);
  const json = (name: string) => {
    const text = given.get(name);
    return text === null ? null : parseJson(text, `${name} is no JSON.`);
  };
  const sent = {
    query: given.get("query"),
    // In an address, and only there, an empty name is none.
    operationName: given.get("operationName") || null,
    documentId: given.get("documentId"),
    variables: json("variables"),
    extensions: json("extensions"),
  };
  return parseParameters(sent, () => ({ variables: parseExactly(given.get("variables") ?? "null") }));
}

/** `parseAgain` gives the same with ExactNumbers. */
export function parseParameters(given: unknown, parseAgain: () => unknown): Sent {
  if (Array.isArray(given)) throw malformed("Send one operation per request: batches are not taken.");
  if (!isJsonObject(given)) throw malformed("Send a JSON object with the operation in query.");
  return {
    query: textIn(given, "query"),
    operationName: textIn(given, "operationName"),
    variables: objectIn(given, "variables"),
    extensions: objectIn(given, "extensions"),
    documentId: textIn(given, "documentId"),
    parseExactVariables: () => objectIn(parsedAgain(parseAgain), "variables"),
  };
}

/** It is parsed by functions that call each other for each level. */
function parsedAgain(parseAgain: () => unknown): Variables {
  try {
    return parseAgain() as Variables;
  } catch (cause) {
    throw malformed("The variables have too many levels.", cause);
  }
}

/**
 * Other types are refused, not guessed: forms and plain text are what a page of a stranger may send in the name of a browser's
 * user without being asked (CORS's simple requests).
 */
export function checkContentType(contentType: string | undefined): void {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().replaceAll(/[\s"]/g, "").split(";");
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  if (type === "application/json" && (charset === undefined || /^charset=utf-?8$/.test(charset))) return;
  throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", "Send the operation as application/json in UTF-8.", {
    headers: { "Accept-Post": "application/json" },
  });
}

function parseJson(text: string, complaint: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformed(complaint, cause);
  }
}

function textIn(given: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = given[name] ?? null;
  if (value !== null && typeof value !== "string") throw malformed(`${name} must be a text.`);
  return value;
}

function objectIn(given: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = given[name] ?? {};
  if (!isJsonObject(value)) throw malformed(`${name} must be an object.`);
  return value;
}

function malformed(message: string, cause?: unknown): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", message, { cause });
}
