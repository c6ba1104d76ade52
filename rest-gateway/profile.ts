import type { IncomingHttpHeaders } from "node:http";

const WRITES: ReadonlySet<string> = new Set(["POST", "PATCH", "PUT", "DELETE"]);

/** What a request says of the schema that it is about: `Content-Profile` where it writes, else `Accept-Profile`. */
export function profileHeader(method: string, headers: IncomingHttpHeaders): string | undefined {
  return headers[WRITES.has(method) ? "content-profile" : "accept-profile"] as string | undefined;
}

/** Clients send UTF-8, or else Latin-1, of which node has read each byte as a character. */
export function schemaInHeader(header: string, schemas: readonly string[]): string {
  return schemas.includes(header) ? header : Buffer.from(header, "latin1").toString();
}
