import type { Interface, Occasion } from "./context.ts";
import { readCookies } from "./cookies.ts";

export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;
type Shown = { readonly id: string; readonly method: string; readonly path: string; readonly headers: RequestHeaders };

/** What SQL can know of a request, under PostgREST's names. */
export function occasionOf(door: Interface, { id, method, path, headers }: Shown): Occasion {
  const { cookie } = headers;
  return {
    interface: door,
    requestId: id,
    method,
    path,
    // What is undefined is left out.
    headers: asSent(JSON.stringify(cookie === undefined ? headers : { ...headers, cookie: undefined })),
    cookies: cookie === undefined ? "{}" : asSent(JSON.stringify(readCookies(cookie))),
  };
}

/** Clients send UTF-8, if anything beyond ASCII, and node has read each byte as a character. */
function asSent(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text, "latin1").toString();
}
