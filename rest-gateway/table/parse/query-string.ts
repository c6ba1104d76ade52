import type { IncomingHttpHeaders } from "node:http";
import { HttpError, readApiKey } from "#http";

const API_KEY = "apikey";
const API_KEY_HEADERS = [API_KEY] as const;

export type UrlParameter = readonly [name: string, value: string];

/** Parses `select=id&name=eq.a%20b`, in order. Names without `=` are ignored. */
export function parseQueryString(text: string): readonly UrlParameter[] {
  const parameters: UrlParameter[] = [];
  const decode = /[%+]/.test(text) ? decodeQuery : unchanged;
  // A regular expression would take several times as long.
  for (const part of text.includes(";") ? text.split(/[&;]/) : text.split("&")) {
    const equals = part.indexOf("=");
    if (equals >= 0) parameters.push([decode(part.slice(0, equals)), decode(part.slice(equals + 1))]);
  }
  return parameters;
}

/**
 * Parses a form, in which a name without `=` has an empty value: curl sends JSON with the type of a form by default, which must not be an
 * empty form.
 */
export function parseForm(text: string): readonly UrlParameter[] {
  const parts = text.split(/[&;]/).filter((part) => part !== "");
  return parts.flatMap((part) => parseQueryString(part.includes("=") ? part : `${part}=`));
}

/** Returns the parameters sorted by name, as in `Content-Location`. */
export function canonicalQueryString(parameters: readonly UrlParameter[]): string {
  const values = new Map<string, string[]>();
  for (const [name, value] of parameters) values.set(name, [...(values.get(name) ?? []), encodeQuery(value)]);
  return [...values.keys()]
    .sort()
    .map((name) => `${encodeQuery(name)}=${values.get(name)!.join()}`)
    .join("&");
}

/** Decodes percent-encoding. A percent sign without two hexadecimal digits is literal. */
export function decodePercent(text: string): string {
  if (!text.includes("%")) return text;
  const decoded = tryDecodeUri(text) ?? tryDecodeUri(text.replace(/%(?![\dA-Fa-f]{2})/g, "%25"));
  if (decoded === null) throw new HttpError(400, "22021", 'invalid byte sequence for encoding "UTF8"');
  // Postgres cannot store a zero byte, which ends a string in its protocol.
  if (decoded.includes("\0")) throw new HttpError(400, "22021", 'invalid byte sequence for encoding "UTF8": 0x00');
  return decoded;
}

function tryDecodeUri(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Decodes a query, in which a plus sign is a space. */
export function decodeQuery(text: string): string {
  return /[%+]/.test(text) ? decodePercent(text.replaceAll("+", " ")) : text;
}

const UNRESERVED = /^[\w.~-]*$/;

export function encodeQuery(text: string): string {
  if (UNRESERVED.test(text)) return text;
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function unchanged(text: string): string {
  return text;
}

export function readTableApiKey(headers: IncomingHttpHeaders, rawQuery: string): string | null {
  return readApiKey(headers, API_KEY_HEADERS, () =>
    rawQuery.includes(`${API_KEY}=`) ? parseQueryString(rawQuery).find(([name]) => name === API_KEY)?.[1] : null,
  );
}

/** Removes the API key, but keeps `apikey=eq.x`, which is a filter: without it, a change would affect more rows. */
export function withoutApiKey(parameters: readonly UrlParameter[], key: string | null): readonly UrlParameter[] {
  return parameters.filter(([name, value]) => name !== API_KEY || value !== (key ?? ""));
}

/** Returns the query string without the key: the request, independent of the caller. */
export function queryWithoutApiKey(headers: IncomingHttpHeaders, rawQuery: string): string {
  if (!rawQuery.includes(`${API_KEY}=`)) return rawQuery;
  const key = readTableApiKey(headers, rawQuery);
  const isKey = (part: string) => {
    const parameters = parseQueryString(part);
    return parameters.length > 0 && withoutApiKey(parameters, key).length === 0;
  };
  return rawQuery
    .split(/[&;]/)
    .filter((part) => !isKey(part))
    .join("&");
}

/** Returns the value as shown in errors, masked if it may be a key. */
export function maskApiKey(name: string, value: string): string {
  return name === API_KEY ? "…" : value;
}
