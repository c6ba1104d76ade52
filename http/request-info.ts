import type { InterfaceName, RequestInfo } from "../engine/identity/caller-settings.ts";

export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;
type RequestParts = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly headers: RequestHeaders;
};

/** What SQL can know of a request, under PostgREST's names. */
export function requestInfoOf(interfaceName: InterfaceName, { id, method, path, headers }: RequestParts): RequestInfo {
  const { cookie } = headers;
  return {
    interface: interfaceName,
    requestId: id,
    method,
    path,
    // What is undefined is left out.
    headers: decodeUtf8(JSON.stringify(cookie === undefined ? headers : { ...headers, cookie: undefined })),
    cookies: cookie === undefined ? "{}" : decodeUtf8(JSON.stringify(readCookies(cookie))),
  };
}

/** Clients send UTF-8, if anything beyond ASCII, and node has read each byte as a character. */
function decodeUtf8(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text, "latin1").toString();
}

/** `a=1; b="2"`; of several of one name the first counts, which is the one of the longest path (RFC 6265 §5.4). */
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

/** Null without one, or an empty one. */
export function readCookie(header: unknown, name: string): string | null {
  const cookies = readCookies(header);
  return (Object.hasOwn(cookies, name) && cookies[name]) || null;
}
