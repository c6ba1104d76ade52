import type { InterfaceName, RequestInfo } from "#accounts/identity";

export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;
type RequestParts = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly headers: RequestHeaders;
};

/** Returns the request in the settings that PostgREST uses, for SQL. */
export function requestInfoOf(interfaceName: InterfaceName, { id, method, path, headers }: RequestParts): RequestInfo {
  const { cookie } = headers;
  return {
    interface: interfaceName,
    requestId: id,
    method,
    path,
    // JSON.stringify omits undefined properties.
    headers: decodeUtf8(JSON.stringify(cookie === undefined ? headers : { ...headers, cookie: undefined })),
    cookies: cookie === undefined ? "{}" : decodeUtf8(JSON.stringify(readCookies(cookie))),
  };
}

/** Node decodes header bytes as latin1, but clients that send non-ASCII characters send UTF-8. */
function decodeUtf8(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text, "latin1").toString();
}

/** Parses `a=1; b="2"`. Of several cookies with one name the first wins: it has the longest path (RFC 6265 §5.4). */
export function readCookies(header: unknown): Readonly<Record<string, string>> {
  if (typeof header !== "string") return {};
  const pairs = header.split(";").flatMap((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return name === "" ? [] : [[name, value.join("=")] as const];
  });
  const cookies = new Map<string, string>();
  for (const [name, value] of pairs) if (!cookies.has(name)) cookies.set(name, value);
  return Object.fromEntries(cookies);
}

/** Returns null if the cookie is missing or empty. */
export function readCookie(header: unknown, name: string): string | null {
  const cookies = readCookies(header);
  return (Object.hasOwn(cookies, name) && cookies[name]) || null;
}
