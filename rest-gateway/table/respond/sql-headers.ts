import { HttpError, securityHeaders } from "#http";

/** The headers that the service itself may set. */
const RESPONSE_HEADERS = [
  ...Object.keys(securityHeaders({ overHttps: true })),
  "Access-Control-Allow-Credentials",
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "Allow",
  "Cache-Control",
  "Content-Location",
  "Content-Profile",
  "Content-Range",
  "Content-Type",
  "Link",
  "Location",
  "Preference-Applied",
  "Proxy-Status",
  "Retry-After",
  "Server-Timing",
  "Vary",
  "WWW-Authenticate",
  "X-Consistency",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
];

const CANONICAL_NAMES: ReadonlyMap<string, string> = new Map(
  RESPONSE_HEADERS.map((name) => [name.toLowerCase(), name]),
);

/** Parses the headers that SQL has set in response.headers, `[{"Set-Cookie":"a"},{"Set-Cookie":"b"}]`; a header may occur several times. */
export function parseSqlHeaders(text: string | null): Record<string, string | string[]> {
  if (text === null) return {};
  const headers = new Map<string, string | string[]>();
  for (const [sqlName, value] of parseHeaderPairs(text)) {
    const name = canonicalHeaderName(sqlName);
    const previous = headers.get(name);
    headers.set(name, previous === undefined ? value : [previous, value].flat());
  }
  return Object.fromEntries(headers);
}

/** Parses the status that SQL has set in response.status; after one below 200, clients would wait for another response. */
export function parseSqlStatus(text: string | null): number | null {
  if (text === null) return null;
  const status = Number(text);
  if (/^\d{3}$/.test(text) && status >= 200 && status < 600) return status;
  throw new HttpError(500, "PGRST112", "response.status guc must be a valid status code");
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u{10ffff}]*$/u;

function parseHeaderPairs(text: string): [name: string, value: string][] {
  const pairs = parseHeadersJson(text);
  const isHeaderPair = (pair: unknown): pair is Record<string, string> =>
    typeof pair === "object" &&
    pair !== null &&
    Object.entries(pair).length === 1 &&
    Object.entries(pair).every(isValidHeader);
  if (!Array.isArray(pairs) || !pairs.every(isHeaderPair)) throw invalidSqlHeaders();
  return pairs.flatMap((pair) => Object.entries(pair));
}

/** Returns true if HTTP allows the header, which has no line breaks. */
export function isValidHeader([name, value]: readonly [name: string, value: unknown]): boolean {
  return HEADER_NAME.test(name) && typeof value === "string" && HEADER_VALUE.test(value);
}

function parseHeadersJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidSqlHeaders();
  }
}

function invalidSqlHeaders(): HttpError {
  return new HttpError(
    500,
    "PGRST111",
    "response.headers guc must be a JSON array composed of objects with a single key and a string value",
  );
}

/** Returns the name from SQL in our spelling: with other capital letters, the header would be added to ours instead of replacing it. */
export function canonicalHeaderName(name: string): string {
  return CANONICAL_NAMES.get(name.toLowerCase()) ?? name;
}
