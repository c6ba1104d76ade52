import { type CacheHits, RecentMap } from "../../engine/cache/recent-map.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Intent } from "../../engine/statement/intent.ts";
import type { PreparedRequest } from "../../engine/statement/prepare.ts";
import { decodeQuery, encodeQuery, parseQueryString } from "./parse/query-string.ts";
import type { RawTableRequest, TableRequest } from "./parse/request.ts";

const SHAPE_PARAMETER = /^(?:select|order|limit|offset)=/;
/** Of the others these have a meaning of their own. */
const COMPARISON_PARAMETER =
  /^(?!(?:and|or|columns|on_conflict|cursor|apikey)=)[A-Za-z_]\w*=(?:not\.)?(?:n?eq|[gl]te?)\./;
const TABLE_PATH = /^\/\w+$/;

/** A request for rows, as it was read and planned. */
export type PlannedTableRequest = {
  readonly parsed: TableRequest;
  readonly intent: Intent;
  readonly prepared: PreparedRequest;
};

type CachedRequest = PlannedTableRequest & { readonly canonicalQuery: ReturnType<typeof canonicalQueryTemplate> };

const MAX_CACHED_SHAPES = 1_000;

/**
 * What was made of the latest requests, for others of the same form: to read and to plan each of them takes a fifth of the
 * time that is spent on a small answer here.
 */
export class RequestShapeCache {
  readonly #known: RecentMap<string, CachedRequest>;
  #catalog: Catalog | null = null;

  constructor(hits?: CacheHits) {
    this.#known = new RecentMap(MAX_CACHED_SHAPES, undefined, hits);
  }

  /** Null: it was not asked lately. What was learnt with another catalogue is forgotten. */
  find(shape: RequestShape, rawQuery: string, role: string, catalog: Catalog): PlannedTableRequest | null {
    if (catalog !== this.#catalog) {
      this.#known.clear();
      this.#catalog = catalog;
    }
    const cached = this.#known.get(cacheKey(shape, role));
    return cached ? bindShapeValues(cached, shape.values, rawQuery) : null;
  }

  add(shape: RequestShape, rawQuery: string, role: string, planned: PlannedTableRequest): void {
    this.#known.set(cacheKey(shape, role), { ...planned, canonicalQuery: canonicalQueryTemplate(rawQuery) });
  }
}

/** A form has a certain number of lines, a role any. */
function cacheKey({ text }: RequestShape, role: string): string {
  return `${text}\n${role}`;
}

function bindShapeValues(
  { parsed, intent: cachedIntent, prepared, canonicalQuery }: CachedRequest,
  values: readonly string[],
  rawQuery: string,
): PlannedTableRequest {
  const conditions = cachedIntent.selection.conditions.map(({ path, value: condition }, index) => {
    if (condition.kind !== "filter" || condition.operation.kind !== "compare") throw new TypeError("No comparison");
    return { path, value: { ...condition, operation: { ...condition.operation, value: values[index]! } } };
  });
  const intent: Intent = { ...cachedIntent, selection: { ...cachedIntent.selection, conditions } };
  return {
    parsed: {
      ...parsed,
      action: { kind: "statement", intent },
      parameters: parseQueryString(rawQuery),
      canonicalQuery: canonicalQuery(values),
    },
    intent,
    prepared: prepared.withIntent(intent),
  };
}

/** Requests of one form are read and planned alike: they differ in values that only Postgres reads. */
type RequestShape = {
  /** All that was written, without the values. */
  readonly text: string;
  /** What plain comparisons compare with, in the order in which they stand. */
  readonly values: readonly string[];
};

/** `select=id&id=eq.5` has the value 5. Null: this reads no form in it, or it is not about a table that is read. */
export function requestShape({
  method,
  path,
  rawQuery,
  headers,
}: Omit<RawTableRequest, "content">): RequestShape | null {
  if ((method !== "GET" && method !== "HEAD") || !TABLE_PATH.test(path) || rawQuery.includes(";")) return null;
  const { accept, prefer, range, "accept-profile": profile } = headers;
  let text = `${method} ${path}\n${accept}\n${prefer}\n${range}\n${profile}\n`;
  const values: string[] = [];
  for (const part of rawQuery.split("&")) {
    if (SHAPE_PARAMETER.test(part)) text += `${part}&`;
    else {
      const start = COMPARISON_PARAMETER.exec(part)?.[0];
      if (start === undefined) return null;
      text += `${start}&`;
      values.push(decodeQuery(part.slice(start.length)));
    }
  }
  return { text, values };
}

/** What the canonical query string of a form's requests is, by their values: all else is put in order and encoded once. */
function canonicalQueryTemplate(rawQuery: string): (values: readonly string[]) => string {
  const byName = new Map<string, QueryPiece[][]>();
  let index = 0;
  for (const part of rawQuery.split("&")) {
    const written = COMPARISON_PARAMETER.exec(part)?.[0] ?? part;
    const equals = written.indexOf("=");
    const name = written.slice(0, equals);
    const text = encodeQuery(decodeQuery(written.slice(equals + 1)));
    byName.set(name, [...(byName.get(name) ?? []), SHAPE_PARAMETER.test(part) ? [text] : [text, index++]]);
  }
  const pieces = [...byName.keys()].sort().flatMap((name, place): QueryPiece[] => {
    const [first, ...others] = byName.get(name)!;
    return [place === 0 ? `${name}=` : `&${name}=`, ...first!, ...others.flatMap((other) => [",", ...other])];
  });
  return (values) => pieces.map((piece) => (typeof piece === "string" ? piece : encodeQuery(values[piece]!))).join("");
}

/** A text that all requests of the form have, or where in their values the one stands that goes there. */
type QueryPiece = string | number;
