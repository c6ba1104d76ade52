/** One of the types that a client takes, as it spells it without spaces: `application/json;version=2`. */
export type MediaRange = {
  readonly type: string;
  /** From 0, not at all, to 1. */
  readonly quality: number;
  /** Of equals the one that says more is meant. */
  readonly precision: number;
};

/** `text/csv, application/json;q=0.9`, best first. */
export function readMediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .split(",")
    .map(toRange)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision);
}

/** What follows the quality is of no interest (RFC 9110, §12.5.1). */
function toRange(text: string): MediaRange {
  const [type = "", quality = ""] = text.replaceAll(/\s/g, "").split(/;q=/i, 2);
  const number = /^\d+(\.\d+)?/.exec(quality)?.[0] ?? "1";
  return { type, quality: Number(number), precision: count(type, ";") - count(type, "*") };
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}
