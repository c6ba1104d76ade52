import { isUtf8 } from "node:buffer";
import type { GatewayRequest, GatewayResponse } from "#http";
import { BATCH_TYPE } from "../request/dialect.ts";
import { type BatchPart, isJsonType } from "./batch-parts.ts";

/** Headers that concern the batch's own body or response. */
const OWN_HEADERS =
  /^(?:accept|content-(?:type|length|encoding)|transfer-encoding|expect|prefer|range|range-unit|if-.*|idempotency-key)$/;
const PROFILE_HEADERS = ["accept-profile", "content-profile"] as const;

export function hasBatchType({ headers }: Pick<GatewayRequest, "headers">): boolean {
  return (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase() === BATCH_TYPE;
}

/** Returns the headers of a part. Headers that SQL reads, such as the client's address, are the batch's; the profile is inherited. */
export function inheritHeaders(batch: GatewayRequest["headers"], part: BatchPart): GatewayRequest["headers"] {
  const kept = Object.entries(batch).filter(([name]) => !OWN_HEADERS.test(name));
  const [profile] = [part.headers, batch].flatMap((headers) => PROFILE_HEADERS.flatMap((name) => headers[name] ?? []));
  const profiles = PROFILE_HEADERS.flatMap((name) => (profile === undefined ? [] : [[name, profile] as const]));
  return { ...Object.fromEntries([...kept, ...profiles]), ...part.headers };
}

const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");

/** Returns a JSON list with the status, headers and body of each response. */
export function listResponses(responses: readonly GatewayResponse[]): Buffer {
  return Buffer.concat([OPENING, ...responses.flatMap(toPieces), CLOSING]);
}

/** Returns the response of a part as JSON; a JSON body is embedded unchanged. */
function toPieces({ status, headers, body }: GatewayResponse, index: number): Buffer[] {
  const head = `${index > 0 ? "," : ""}{"status":${status},"headers":${JSON.stringify(decodeHeaders(headers))},"body":`;
  if (body === null) return [Buffer.from(`${head}null}`)];
  if (isJsonType(headers["Content-Type"])) {
    return [Buffer.from(head), body.length === 0 ? Buffer.from("null") : Buffer.from(body), Buffer.from("}")];
  }
  const bytes = Buffer.from(body);
  const content =
    isUtf8(bytes) && !isBinaryType(headers["Content-Type"])
      ? JSON.stringify(bytes.toString())
      : `${JSON.stringify(bytes.toString("base64"))},"encoding":"base64"`;
  return [Buffer.from(`${head}${content}}`)];
}

function isBinaryType(type: unknown): boolean {
  return type === "application/octet-stream";
}

/** Decodes headers, which are bytes of UTF-8, one per character. */
function decodeHeaders(headers: GatewayResponse["headers"]): GatewayResponse["headers"] {
  const decode = (text: string) => Buffer.from(text, "latin1").toString();
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? decode(value) : value.map(decode),
  ]);
  return Object.fromEntries(entries);
}
