import { decodeQuery, encodeQuery } from "./query-string.ts";
import type { RawRequest } from "./request.ts";

/** Requests of one form are read and planned alike: they differ in values that only Postgres reads. */
export type Form = {
  /** All that was written, without the values. */
  readonly text: string;
  /** What plain comparisons compare with, in the order in which they stand. */
  readonly values: readonly string[];
};

const WHOLE = /^(?:select|order|limit|offset)=/;
/** Of the others these have a meaning of their own. */
const COMPARISON = /^(?!(?:and|or|columns|on_conflict|cursor|apikey)=)[A-Za-z_]\w*=(?:not\.)?(?:n?eq|[gl]te?)\./;
const TABLE = /^\/\w+$/;

/** `select=id&id=eq.5` has the value 5. Null: this reads no form in it, or it is not about a table that is read. */
export function formOf({ method, path, rawQuery, headers }: Omit<RawRequest, "content">): Form | null {
  if ((method !== "GET" && method !== "HEAD") || !TABLE.test(path) || rawQuery.includes(";")) return null;
  const { accept, prefer, range, "accept-profile": profile } = headers;
  let text = `${method} ${path}\n${accept}\n${prefer}\n${range}\n${profile}\n`;
  const values: string[] = [];
  for (const part of rawQuery.split("&")) {
    if (WHOLE.test(part)) text += `${part}&`;
    else {
      const beginning = COMPARISON.exec(part)?.[0];
      if (beginning === undefined) return null;
      text += `${beginning}&`;
      values.push(decodeQuery(part.slice(beginning.length)));
    }
  }
  return { text, values };
}

/** What the canonical query string of a form's requests is, by their values: all else is put in order and encoded once. */
export function canonicalFormOf(rawQuery: string): (values: readonly string[]) => string {
  const byName = new Map<string, Piece[][]>();
  let index = 0;
  for (const part of rawQuery.split("&")) {
    const written = COMPARISON.exec(part)?.[0] ?? part;
    const equals = written.indexOf("=");
    const name = written.slice(0, equals);
    const text = encodeQuery(decodeQuery(written.slice(equals + 1)));
    byName.set(name, [...(byName.get(name) ?? []), WHOLE.test(part) ? [text] : [text, index++]]);
  }
  const pieces = [...byName.keys()].sort().flatMap((name, place): Piece[] => {
    const [first, ...others] = byName.get(name)!;
    return [place === 0 ? `${name}=` : `&${name}=`, ...first!, ...others.flatMap((other) => [",", ...other])];
  });
  return (values) => pieces.map((piece) => (typeof piece === "string" ? piece : encodeQuery(values[piece]!))).join("");
}

/** A text that all requests of the form have, or where in their values the one stands that goes there. */
type Piece = string | number;
