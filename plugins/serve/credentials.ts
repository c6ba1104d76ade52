import type { IncomingHttpHeaders } from "node:http";
import type { Credentials } from "../../engine/caller/caller.ts";

type Shown = { readonly headers: IncomingHttpHeaders; readonly rawQuery: string };

/** `Authorization: Bearer …`, `X-API-Key: …`, `?api_key=…` */
export function credentialsOf({ headers, rawQuery }: Shown): Credentials {
  const { authorization = null, "x-api-key": header, apikey } = headers;
  const inHeader = [header, apikey].find((value) => typeof value === "string" && value !== "") as string | undefined;
  const inQuery = rawQuery.includes("api_key=") ? new URLSearchParams(rawQuery).get("api_key") : null;
  return { authorization, apiKey: inHeader ?? inQuery };
}

/** The same in a socket's first message, in letters of any case, on top or among `headers`: browsers cannot give a socket headers. */
export function credentialsIn(parameters: unknown): Credentials | null {
  const given = inSmallLetters(parameters);
  return shownIn(given) ?? shownIn(inSmallLetters(given.headers));
}

function shownIn(given: Readonly<Record<string, unknown>>): Credentials | null {
  const texts = Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const shown = credentialsOf({ headers: Object.fromEntries(texts), rawQuery: "" });
  return shown.authorization === null && shown.apiKey === null ? null : shown;
}

function inSmallLetters(given: unknown): Readonly<Record<string, unknown>> {
  if (typeof given !== "object" || given === null) return {};
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
}
