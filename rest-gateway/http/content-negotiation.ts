import type { IncomingHttpHeaders } from "node:http";

const WRITE_METHODS: ReadonlySet<string> = new Set(["POST", "PATCH", "PUT", "DELETE"]);

/** One of the types that a client takes, as it spells it without spaces: `application/json;version=2`. */
type MediaRange = {
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
    .map(toMediaRange)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision);
}

/** What follows the quality is of no interest (RFC 9110, §12.5.1). */
function toMediaRange(text: string): MediaRange {
  const [type = "", quality = ""] = text.replaceAll(/\s/g, "").split(/;q=/i, 2);
  const number = /^\d+(\.\d+)?/.exec(quality)?.[0] ?? "1";
  return { type, quality: Number(number), precision: countCharacter(type, ";") - countCharacter(type, "*") };
}

function countCharacter(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** What a request says of the schema that it is about: `Content-Profile` where it writes, else `Accept-Profile`. */
export function profileHeader(method: string, headers: IncomingHttpHeaders): string | undefined {
  return headers[WRITE_METHODS.has(method) ? "content-profile" : "accept-profile"] as string | undefined;
}

/** Clients send UTF-8, or else Latin-1, of which node has read each byte as a character. */
export function decodeSchemaName(header: string, schemas: readonly string[]): string {
  return schemas.includes(header) ? header : Buffer.from(header, "latin1").toString();
}
