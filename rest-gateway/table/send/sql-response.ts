import { ApiError } from "../../../engine/errors.ts";
import { spelled } from "./spelled.ts";

/** `[{"Set-Cookie":"a"},{"Set-Cookie":"b"}]`, what SQL has put into response.headers; a header may come several times. */
export function readSqlHeaders(text: string | null): Record<string, string | string[]> {
  if (text === null) return {};
  const headers = new Map<string, string | string[]>();
  for (const [given, value] of readPairs(text)) {
    const name = spelled(given);
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(headers);
}

/** What SQL has put into response.status; those below 200 announce an answer that never comes. */
export function readSqlStatus(text: string | null): number | null {
  if (text === null) return null;
  const status = Number(text);
  if (/^\d{3}$/.test(text) && status >= 200 && status < 600) return status;
  throw new ApiError(500, "PGRST112", "response.status guc must be a valid status code");
}

const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\t\u0020-\u007e\u0080-\u{10ffff}]*$/u;

function readPairs(text: string): [name: string, value: string][] {
  const pairs = readJson(text);
  const isRight = (pair: unknown): pair is Record<string, string> =>
    typeof pair === "object" &&
    pair !== null &&
    Object.entries(pair).length === 1 &&
    Object.entries(pair).every(isHeader);
  if (!Array.isArray(pairs) || !pairs.every(isRight)) throw unreadable();
  return pairs.flatMap((pair) => Object.entries(pair));
}

/** HTTP has no room for line breaks. */
export function isHeader([name, value]: readonly [name: string, value: unknown]): boolean {
  return NAME.test(name) && typeof value === "string" && VALUE.test(value);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable();
  }
}

function unreadable(): ApiError {
  return new ApiError(
    500,
    "PGRST111",
    "response.headers guc must be a JSON array composed of objects with a single key and a string value",
  );
}
