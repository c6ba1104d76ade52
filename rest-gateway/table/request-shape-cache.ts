import type { Catalog } from "#catalog";
import type { Intent } from "#planner/intent";
import { type CacheHits, RecentMap } from "#runtime";
import { decodeQuery, encodeQuery, parseQueryString } from "./parse/query-string.ts";
import type { RawTableRequest, TableRequest } from "./parse/request.ts";

/** Parameters whose texts are part of the shape, without those that contain values, such as `embedding.cosine([…])`. */
const SHAPE_PARAMETER = /^(?!.*\.[a-z]\w*(?:\(|%28)(?!\)|%29))(?:select|order|limit|offset)=/;
/** Comparisons, without parameters that have a meaning of their own. */
const COMPARISON_PARAMETER =
  /^(?!(?:select|order|limit|offset|and|or|columns|on_conflict|cursor|apikey)=)[A-Za-z_]\w*=(?:not\.)?(?:n?eq|[gl]te?)\./;
/** No header has this character. */
const ABSENT = "\0";
const TABLE_PATH = /^\/\w+$/;

/** A parsed request for rows, and the same object for all requests of its shape and role. */
export type ShapedRequest = {
  readonly request: TableRequest;
  readonly intent: Intent;
  readonly planKey: object;
};

type CachedRequest = {
  readonly request: TableRequest;
  readonly intent: Intent;
  readonly canonicalQuery: ReturnType<typeof canonicalQueryTemplate>;
};

/** The limits of the caches of anonymous callers, and of all others. */
const MAX_CACHED_BYTES = 4 * 1024 * 1024;
const REQUEST_OVERHEAD_BYTES = 2_000;
/** An estimate of the size of a parsed request, by the length of its shape. */
const BYTES_PER_SHAPE_CHARACTER = 24;

/**
 * Keeps the latest requests as parsed, for others of the same shape; the planner has their plans. Parsing and finding the plan by its
 * intent take a fifth of the time that the gateway spends on a small response.
 */
export class RequestShapeCache {
  readonly #anonymousRole: string | null;
  readonly #ofAnonymous: RecentMap<string, CachedRequest>;
  readonly #ofOthers: RecentMap<string, CachedRequest>;
  #catalog: Catalog | null = null;

  /** Makes a cache, in which shapes of the anonymous role are cached apart. */
  constructor(hits?: CacheHits, anonymousRole: string | null = null) {
    const makeCache = () => new RecentMap<string, CachedRequest>(MAX_CACHED_BYTES, retainedBytes, hits);
    this.#anonymousRole = anonymousRole;
    [this.#ofAnonymous, this.#ofOthers] = [makeCache(), makeCache()];
  }

  /** Returns null if no request of this shape is cached. Clears the cache if the catalogue has changed. */
  find(shape: RequestShape, rawQuery: string, role: string, catalog: Catalog): ShapedRequest | null {
    if (catalog !== this.#catalog) {
      this.#ofAnonymous.clear();
      this.#ofOthers.clear();
      this.#catalog = catalog;
    }
    const cached = this.#cacheOf(role).get(cacheKey(shape, role));
    return cached ? bindShapeValues(cached, shape.values, rawQuery) : null;
  }

  /** Adds a request that was not found. Returns its plan key. */
  add(
    shape: RequestShape,
    rawQuery: string,
    role: string,
    { request, intent }: Omit<ShapedRequest, "planKey">,
  ): object {
    const cached: CachedRequest = { request, intent, canonicalQuery: canonicalQueryTemplate(rawQuery) };
    this.#cacheOf(role).set(cacheKey(shape, role), cached);
    return cached;
  }

  #cacheOf(role: string): RecentMap<string, CachedRequest> {
    return role === this.#anonymousRole ? this.#ofAnonymous : this.#ofOthers;
  }
}

/** Returns the key. A shape has a fixed number of lines, so the role may contain any characters. */
function cacheKey({ text }: RequestShape, role: string): string {
  return `${text}\n${role}`;
}

function retainedBytes(key: string): number {
  return REQUEST_OVERHEAD_BYTES + BYTES_PER_SHAPE_CHARACTER * key.length;
}

function bindShapeValues(cached: CachedRequest, values: readonly string[], rawQuery: string): ShapedRequest {
  const { request, intent: cachedIntent, canonicalQuery } = cached;
  const conditions = cachedIntent.selection.conditions.map(({ path, value: condition }, index) => {
    if (condition.kind !== "filter" || condition.operation.kind !== "compare") throw new TypeError("No comparison");
    return { path, value: { ...condition, operation: { ...condition.operation, value: values[index]! } } };
  });
  const intent: Intent = { ...cachedIntent, selection: { ...cachedIntent.selection, conditions } };
  return {
    request: {
      ...request,
      action: { kind: "statement", intent },
      parameters: parseQueryString(rawQuery),
      canonicalQuery: canonicalQuery(values),
    },
    intent,
    planKey: cached,
  };
}

/** The shape of a request: requests of one shape have the same plan and differ in values that only Postgres reads. */
type RequestShape = {
  /** The request as written, without the values. */
  readonly text: string;
  /** The operands of plain comparisons, in order. */
  readonly values: readonly string[];
};

/** Returns the shape: `select=id&id=eq.5` has the value 5. Null if the request cannot be cached by shape, or does not read a table. */
export function requestShape({
  method,
  path,
  rawQuery,
  headers,
}: Omit<RawTableRequest, "content">): RequestShape | null {
  if ((method !== "GET" && method !== "HEAD") || !TABLE_PATH.test(path) || rawQuery.includes(";")) return null;
  const { accept, prefer, range, "accept-profile": profile } = headers;
  let text = `${method} ${path}\n`;
  for (const header of [accept, prefer, range, profile]) text += `${header ?? ABSENT}\n`;
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

/** Makes the canonical query string of a shape's requests from their values; all else is sorted and encoded once. */
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

/** A text common to all requests of the shape, or the index of a value. */
type QueryPiece = string | number;
