import type { IncomingHttpHeaders } from "node:http";
import { type Parameter, parseQueryString } from "./parse/query-string.ts";

const NAME = "apikey";

/** A key may stand in the address where none is in its header. */
export function readApiKey(headers: IncomingHttpHeaders, rawQuery: string): string | null {
  const inHeader = headers[NAME];
  if (typeof inHeader === "string" && inHeader !== "") return inHeader;
  if (!rawQuery.includes(`${NAME}=`)) return null;
  return parseQueryString(rawQuery).find(([name]) => name === NAME)?.[1] || null;
}

/** What is not the key is a filter of that name, as in `apikey=eq.x`: were it left out, a change would reach more rows. */
export function withoutApiKey(parameters: readonly Parameter[], key: string | null): readonly Parameter[] {
  return parameters.filter(([name, value]) => name !== NAME || value !== (key ?? ""));
}

/** The same of an address as it stands: what is asked for, whoever asks. */
export function queryWithoutApiKey(headers: IncomingHttpHeaders, rawQuery: string): string {
  if (!rawQuery.includes(`${NAME}=`)) return rawQuery;
  const key = readApiKey(headers, rawQuery);
  const isKey = (part: string) => {
    const parameters = parseQueryString(part);
    return parameters.length > 0 && withoutApiKey(parameters, key).length === 0;
  };
  return rawQuery
    .split(/[&;]/)
    .filter((part) => !isKey(part))
    .join("&");
}

/** How a parameter is repeated in a refusal: it may be another key. */
export function shownValue(name: string, value: string): string {
  return name === NAME ? "…" : value;
}
