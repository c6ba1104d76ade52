import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import {
  type GatewayRequest,
  type GatewayResponse,
  isBodyStream,
  type ResponseBody,
  readConsistencyHeader,
} from "#http";
import { type CachedResult, claimsKey, type PolicyClaims, type ResultCache } from "#live";
import { type ParsedRequest, type RequestState, type ResponseCache, recordRequest } from "#rest-gateway";

type KeptResponse = { readonly result: CachedResult; readonly response: GatewayResponse; record(): void };
type KnownRequest = { readonly claims: PolicyClaims; readonly byAudience: Map<string, KeptResponse> };

/** Of a response, besides its body, which is that of the result. */
const OVERHEAD_BYTES = 2_000;

/** Responses that were made of cached results, by the request as the client wrote it: neither parsed nor planned again. */
export class CachedResponses implements ResponseCache {
  readonly #cache: ResultCache;
  readonly #catalog: () => Catalog;
  readonly #known = new Map<string, KnownRequest>();

  constructor(cache: ResultCache, catalog: () => Catalog) {
    this.#cache = cache;
    this.#catalog = catalog;
  }

  find(request: GatewayRequest, caller: Caller): GatewayResponse | null {
    const key = keyOf(request, caller);
    const known = key === null ? undefined : this.#known.get(key);
    const kept = known?.byAudience.get(claimsKey(caller, known.claims));
    if (!kept?.result.isCurrent || !this.#cache.serves(readConsistencyHeader(request.headers))) return null;
    this.#cache.hit(kept.result);
    request.stages.note("cache", "hit");
    kept.record();
    return kept.response;
  }

  keep(
    { request, caller, parsed, pipeline, cached }: RequestState<ParsedRequest>,
    { planned, intent }: Parameters<ResponseCache["keep"]>[1],
    { status, headers, body }: GatewayResponse<ResponseBody>,
  ): void {
    const { catalog, version } = parsed;
    const key = keyOf(request, caller);
    const [result = null, ...others] = cached;
    const isMadeOfIt = others.length === 0 && catalog === this.#catalog();
    if (key === null || result === null || !isMadeOfIt || isBodyStream(body)) return;
    const { claims } = result.dependencies;
    const existing = this.#known.get(key);
    // The keys of audiences are written by this very list of claims.
    const known = existing?.claims === claims ? existing : { claims, byAudience: new Map<string, KeptResponse>() };
    const { audience } = result;
    const { method, rawQuery } = request;
    const recorded = {
      request: { method, rawQuery },
      caller: { role: caller.role },
      parsed: { catalog, version },
      pipeline,
    };
    const kept = {
      result,
      response: { status, headers, body },
      record: () => recordRequest(recorded, planned, intent),
    };
    const drop = () => {
      if (known.byAudience.get(audience) === kept) known.byAudience.delete(audience);
      if (known.byAudience.size === 0 && this.#known.get(key) === known) this.#known.delete(key);
    };
    known.byAudience.set(audience, kept);
    this.#known.set(key, known);
    if (!this.#cache.attach(result, OVERHEAD_BYTES + 2 * key.length, drop)) drop();
  }
}

/** All that the table interface reads in a request for rows. Null: the response is not kept. */
function keyOf({ method, path, rawQuery, headers }: GatewayRequest, { role }: Caller): string | null {
  const isRead = method === "GET" || method === "HEAD";
  if (!isRead || headers["if-none-match"] !== undefined || rawQuery.includes("apikey=")) return null;
  const { accept, prefer, range, "accept-profile": profile } = headers;
  return `${role}\n${method} ${path}?${rawQuery}\n${accept}\n${prefer}\n${range}\n${profile}`;
}
