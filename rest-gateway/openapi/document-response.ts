import { promisify } from "node:util";
import { createGunzip, gunzip } from "node:zlib";
import type { Body, Flow, GatewayRequest, GatewayResponse } from "../http.ts";
import { readMediaRanges } from "../media-range.ts";
import type { WrittenDocument } from "./write.ts";

type Headers = Readonly<Record<string, string>> & { readonly Vary: string };

/** A larger text is not held whole. */
const MOST_HELD_BYTES = 1024 * 1024;

const inflate = promisify(gunzip);

/** Compressed to whoever takes that, else as text, in pieces where it is large. */
export async function documentResponse(
  { gzip, bytes }: WrittenDocument,
  { headers: sent }: Pick<GatewayRequest, "headers">,
  given: Headers,
): Promise<GatewayResponse<Body>> {
  const headers = { ...given, Vary: `${given.Vary}, Accept-Encoding` };
  if (takesGzip(sent["accept-encoding"])) {
    return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body: gzip };
  }
  return { status: 200, headers, body: bytes > MOST_HELD_BYTES ? inPieces(gzip) : await inflate(gzip) };
}

/** `gzip, br;q=0.5`: the same grammar as that of media types. */
function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  const codings = readMediaRanges(String(acceptEncoding ?? ""));
  const named = codings.find(({ type }) => type.toLowerCase() === "gzip") ?? codings.find(({ type }) => type === "*");
  return named !== undefined && named.quality > 0;
}

async function* inPieces(gzip: Buffer): Flow {
  const text = createGunzip();
  text.end(gzip);
  for await (const data of text) yield { data: data as Buffer, release: () => {} };
}
