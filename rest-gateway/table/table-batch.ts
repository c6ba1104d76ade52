import { isUtf8 } from "node:buffer";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Intent } from "../../engine/statement/intent.ts";
import type { PreparedRequest } from "../../engine/statement/prepare.ts";
import { makeBodyLimits } from "../../http/body-limit.ts";
import { type BatchPart, isJsonType } from "../batch/batch-parts.ts";
import type { BatchInterface, BatchScope } from "../batch/run-batch.ts";
import { type GatewayRequest, isPathUnder, TABLE_PREFIX } from "../http/request.ts";
import type { GatewayResponse } from "../http/response.ts";
import type { ParsedRequest, Pipeline } from "../pipeline.ts";
import { type Preferences, parsePreferences } from "./parse/headers.ts";
import { parseProfile, type TableParseSettings } from "./parse/request.ts";

const BATCH_TYPE = "application/vnd.batch+json";
/** Headers of the batch that say something of its own body or response. */
const OWN_HEADERS =
  /^(?:accept|content-(?:type|length|encoding)|transfer-encoding|expect|prefer|range|range-unit|if-.*|idempotency-key)$/;
const TIME_ZONE = /(?:^|,)\s*(timezone\s*=[^,]*)/i;
const PROFILE_HEADERS = ["accept-profile", "content-profile"] as const;

/** `POST /rest/v1/` with a body of the media type of batches. */
export function isTableBatch({ method, path, headers }: Pick<GatewayRequest, "method" | "path" | "headers">): boolean {
  if (method !== "POST" || path.length > TABLE_PREFIX.length + 1) return false;
  return /^application\/vnd\.batch\+json\s*(?:;|$)/i.test(headers["content-type"] ?? "");
}

type TableBatchOptions<Parsed extends ParsedRequest> = {
  readonly config: Config;
  readonly catalog: () => Catalog;
  readonly pipeline: Pipeline<Parsed>;
  readonly settings: Omit<TableParseSettings, "timeZones">;
  isRolledBack(preferences: Preferences): boolean;
};

export function makeTableBatch<Parsed extends ParsedRequest>({
  config,
  catalog,
  pipeline,
  settings,
  isRolledBack,
}: TableBatchOptions<Parsed>): BatchInterface<Parsed> {
  return {
    pipeline,
    maxParts: config.maxBatchParts,
    maxAnswerBytes: config.maxAnswerBytes,
    bodyLimitOf: makeBodyLimits(config),
    readList: (body) => body,
    scopeOf: ({ headers }): BatchScope => {
      const current = catalog();
      const { schema } = parseProfile(headers["content-profile"] as string | undefined, settings.schemas);
      const { timeZones } = current;
      const preferences = parsePreferences(headers.prefer as string | undefined, { ...settings, timeZones });
      return { catalog: current, schema, timezone: preferences.timezone, rollback: isRolledBack(preferences) };
    },
    toFullPath: (path) => (isPathUnder(TABLE_PREFIX, path.split("?", 1)[0]!) ? path : `${TABLE_PREFIX}${path}`),
    headersOf,
    isDecided,
    respond: (responses) => ({
      status: 200,
      headers: { "Content-Type": BATCH_TYPE },
      body: Buffer.concat([OPENING, ...responses.flatMap(toPieces), CLOSING]),
    }),
  };
}

/** What SQL reads of the request, such as its address, is the batch's; profile and time zone are inherited. */
function headersOf(batch: GatewayRequest["headers"], part: BatchPart): GatewayRequest["headers"] {
  const kept = Object.entries(batch).filter(([name]) => !OWN_HEADERS.test(name));
  const [profile] = [part.headers, batch].flatMap((headers) => PROFILE_HEADERS.flatMap((name) => headers[name] ?? []));
  const profiles = PROFILE_HEADERS.flatMap((name) => (profile === undefined ? [] : [[name, profile] as const]));
  const zone = TIME_ZONE.exec(String(batch.prefer ?? ""))?.[1];
  const own = part.headers.prefer;
  const prefer = zone && !TIME_ZONE.test(own ?? "") ? [...(own ? [own] : []), zone].join(", ") : own;
  return { ...Object.fromEntries([...kept, ...profiles]), ...part.headers, ...(prefer !== undefined && { prefer }) };
}

/** The statements of writes refuse what has to be refused themselves; what a read returns is known when it has run. */
function isDecided(_parsed: ParsedRequest, { count }: Intent, { plan }: PreparedRequest): boolean {
  if (plan.kind === "write") return true;
  return plan.kind === "call" && !plan.readOnly && count === null && plan.format.kind !== "object";
}

const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");

/** The response of a part as JSON; a JSON body is embedded as it is. */
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

/** Headers are bytes of UTF-8, one per character. */
function decodeHeaders(headers: GatewayResponse["headers"]): GatewayResponse["headers"] {
  const decode = (text: string) => Buffer.from(text, "latin1").toString();
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? decode(value) : value.map(decode),
  ]);
  return Object.fromEntries(entries);
}
