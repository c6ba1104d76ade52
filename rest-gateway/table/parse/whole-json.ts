import { isUtf8 } from "node:buffer";
import { HttpError } from "#http";
import { runToCompletion } from "#runtime/concurrency";
import { parseJsonExactly, scanJson } from "#runtime/json";

/** The limit of a body whose values are parsed at once. */
const MAX_BYTES = 4 * 2 ** 20;
/** The limit of nesting, since values are parsed and serialized recursively. */
const MAX_LEVELS = 1_000;

/** Parses all values of a body that Postgres does not read unchanged. `what` is its name in messages. */
export function parseWholeJson(json: Buffer, what: string): unknown {
  if (json.length > MAX_BYTES) {
    throw new HttpError(413, "PAYLOAD_TOO_LARGE", `${what} may not be larger than ${MAX_BYTES} bytes.`);
  }
  const { kind } = runToCompletion(scanJson(json, null, MAX_LEVELS));
  if (kind === "invalid") throw unreadableJson();
  if (kind === "too deep") throw invalidBody(`${what} may not have more than ${MAX_LEVELS} levels`);
  return parseJsonExactly(decodeText(json));
}

export function decodeText(body: Buffer): string {
  if (!isUtf8(body)) throw new HttpError(400, "22021", 'invalid byte sequence for encoding "UTF8"');
  return body.toString();
}

export function unreadableJson(): HttpError {
  return invalidBody("Empty or invalid json");
}

export function invalidBody(message: string): HttpError {
  return new HttpError(400, "PGRST102", message);
}
