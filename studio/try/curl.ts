import { type EditedRequest, parseHeaders } from "./edited-request.ts";

export type RequestTarget = {
  /** `http://127.0.0.1:3000` */
  readonly origin: string;
  /** Null: a shell variable stands for it. */
  readonly token: string | null;
};

/** Paths that want the token as an API key too. */
const KEYED = /^\/(rest|auth|realtime)\/v1\//;

/** The request as a command of a shell. */
export function toCurl({ method, path, headers, body }: EditedRequest, { origin, token }: RequestTarget): string {
  const parts = [`curl ${quote(origin + path)}`];
  if (method === "HEAD") parts.push("--head");
  else if (method !== (body === "" ? "GET" : "POST")) parts.push(`-X ${method}`);
  const credential = token ?? "$TOKEN";
  if (KEYED.test(path)) parts.push(`-H "apikey: ${credential}"`);
  parts.push(`-H "Authorization: Bearer ${credential}"`);
  for (const [name, value] of Object.entries(parseHeaders(headers) ?? {}))
    parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (body !== "" && method !== "GET" && method !== "HEAD") parts.push(`-d ${quote(body)}`);
  return parts.join(" \\\n  ");
}

/** For POSIX shells, where nothing within single quotes is special. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
