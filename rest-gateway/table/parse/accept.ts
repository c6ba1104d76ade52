import { ANY_TYPE, type MediaType, parseMediaType } from "./media-type.ts";

/** `text/csv, application/json;q=0.9`: what the client takes, best first; of equals the one that says more. */
export function parseAccept(header: string | undefined): readonly MediaType[] {
  if (header === undefined) return [ANY_TYPE];
  if (!/[,; ]/.test(header)) return [parseMediaType(header)];
  return header
    .split(",")
    .map(toRange)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision)
    .map(({ type }) => parseMediaType(type));
}

type MediaRange = { readonly type: string; readonly quality: number; readonly precision: number };

/** What follows the quality is of no interest (RFC 9110, §12.5.1). */
function toRange(text: string): MediaRange {
  const [type = "", quality = ""] = text.replaceAll(" ", "").split(";q=", 2);
  const number = /^\d+(\.\d+)?/.exec(quality)?.[0] ?? "1";
  return { type, quality: Number(number), precision: count(type, ";") - count(type, "*") };
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}
