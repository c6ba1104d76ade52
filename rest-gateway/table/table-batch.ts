import type { Catalog } from "#catalog";
import type { Config } from "#config";
import { type GatewayRequest, isPathUnder, TABLE_PREFIX } from "#http";
import type { PreparedRequest } from "#planner";
import { BATCH_TYPE, type ParsedRequest, type Pipeline } from "#rest-gateway/dialect";
import {
  type BatchInterface,
  type BatchPart,
  type BatchScope,
  hasBatchType,
  inheritHeaders,
  listResponses,
} from "#rest-gateway/pipeline";
import { hasPreconditions } from "./conditional-requests.ts";
import { type Preferences, parsePreferences } from "./parse/headers.ts";
import { parseProfile, type TableParseSettings } from "./parse/request.ts";

const TIME_ZONE = /(?:^|,)\s*(timezone\s*=[^,]*)/i;

/** Returns true for `POST /rest/v1/` with a body of the media type of batches. */
export function isTableBatch({ method, path, headers }: Pick<GatewayRequest, "method" | "path" | "headers">): boolean {
  return method === "POST" && path.length <= TABLE_PREFIX.length + 1 && hasBatchType({ headers });
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
    config,
    readList: (body) => body,
    isolationFor: (parts) =>
      parts.some(({ method, headers }) => hasPreconditions(method, headers)) ? "serializable" : null,
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
    readsFurther: () => false,
    respond: (responses) => ({
      status: 200,
      headers: { "Content-Type": BATCH_TYPE },
      body: listResponses(responses),
    }),
  };
}

/** Returns the headers of a part, which also inherits the time zone. */
function headersOf(batch: GatewayRequest["headers"], part: BatchPart): GatewayRequest["headers"] {
  const zone = TIME_ZONE.exec(String(batch.prefer ?? ""))?.[1];
  const own = part.headers.prefer;
  const prefer = zone && !TIME_ZONE.test(own ?? "") ? [...(own ? [own] : []), zone].join(", ") : own;
  return { ...inheritHeaders(batch, part), ...(prefer !== undefined && { prefer }) };
}

/**
 * Returns true if no response to the result can be an error. Statements of writes refuse errors themselves; the result of a read is known
 * after its run.
 */
function isDecided(_parsed: ParsedRequest, { plan, intent: { count } }: PreparedRequest): boolean {
  if (plan.kind === "write") return true;
  return plan.kind === "call" && !plan.readOnly && count === null && plan.format.kind !== "object";
}
