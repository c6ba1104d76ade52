import type { IncomingHttpHeaders } from "node:http";

const WRITE_METHODS: ReadonlySet<string> = new Set(["POST", "PATCH", "PUT", "DELETE"]);

/** A media range of an Accept header, without spaces: `application/json;version=2`. */
type MediaRange = {
  readonly type: string;
  /** From 0 (not acceptable) to 1. */
  readonly quality: number;
  /** Of two ranges with the same quality the more specific one comes first. */
  readonly precision: number;
};

/** `text/csv, application/json;q=0.9`, best first. */
export function readMediaRanges(accept: string): readonly MediaRange[] {
  return accept
    .split(",")
    .map(toMediaRange)
    .sort((a, b) => b.quality - a.quality || b.precision - a.precision);
}

/** Parameters after `q` are ignored (RFC 9110, 12.5.1). */
function toMediaRange(text: string): MediaRange {
  const [type = "", quality = ""] = text.replaceAll(/\s/g, "").split(/;q=/i, 2);
  const number = /^\d+(\.\d+)?/.exec(quality)?.[0] ?? "1";
  return { type, quality: Number(number), precision: countCharacter(type, ";") - countCharacter(type, "*") };
}

/** Whether the client names HTML and prefers it to JSON, as browsers do when they navigate. */
export function prefersHtml({ accept = "" }: Pick<IncomingHttpHeaders, "accept">): boolean {
  if (!accept.includes("text/html")) return false;
  const ranges = readMediaRanges(accept);
  const qualityOf = (isMeant: (type: string) => boolean) =>
    Math.max(0, ...ranges.flatMap(({ type, quality }) => (isMeant(type) ? [quality] : [])));
  return qualityOf((type) => type === "text/html") > qualityOf((type) => /^application\/(.*\+)?json(;|$)/.test(type));
}

function countCharacter(text: string, character: string): number {
  return text.split(character).length - 1;
}

/** The schema that the request selects: `Content-Profile` for writes, `Accept-Profile` for reads. */
export function profileHeader(method: string, headers: IncomingHttpHeaders): string | undefined {
  return headers[WRITE_METHODS.has(method) ? "content-profile" : "accept-profile"] as string | undefined;
}

/** Clients send UTF-8 or Latin-1; Node decodes header bytes as Latin-1. */
export function decodeSchemaName(header: string, schemas: readonly string[]): string {
  return schemas.includes(header) ? header : Buffer.from(header, "latin1").toString();
}
