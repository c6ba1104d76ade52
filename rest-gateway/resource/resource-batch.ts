import { type Catalog, exposedSchemas } from "#catalog";
import type { Config } from "#config";
import { dispatchMethod, type GatewayHandler, type GatewayRequest, isPathUnder } from "#http";
import type { ParsedRequest, Pipeline } from "#rest-gateway/dialect";
import {
  type BatchInterface,
  handleBatch,
  hasBatchType,
  inheritHeaders,
  invalidBatch,
  listResponses,
} from "#rest-gateway/pipeline";
import { runStepwise } from "#runtime/concurrency";
import { readJsonRecords } from "#runtime/json";
import { BATCH_COLLECTION, parseAddress } from "./parse/address.ts";
import { type ResourceRequest, requestsLinks } from "./parse/request.ts";
import { negotiateVersion, type ReadVersions } from "./parse/versions.ts";

const BATCH_PATH = /^\/api(?:\/v\d+)?\/batch$/;
const OPERATIONS = "operations";
const LIST_LIMITS = {
  maxRecords: 1,
  maxMembers: Number.POSITIVE_INFINITY,
  maxLevels: Number.POSITIVE_INFINITY,
};
const OPENING = Buffer.from('{"data":');
const CLOSING = Buffer.from("}");

/** The part of a parsed request that a batch needs. */
type ParsedPart = ParsedRequest & {
  readonly resource: ResourceRequest;
};

type ResourceBatchOptions<Parsed extends ParsedPart> = {
  readonly config: Config;
  readonly catalog: () => Catalog;
  readonly versions: ReadVersions;
  readonly pipeline: Pipeline<Parsed>;
  /** Returns true if the database has a collection with this name. */
  readonly hasCollection: (name: string) => boolean;
  /** Handles all other paths. */
  readonly next: GatewayHandler;
};

/**
 * Handles `/api/v1/batch`: several requests in one transaction. If the database has a table called batch, its rows have this path, and a
 * batch is recognized by its media type.
 */
export function makeResourceBatches<Parsed extends ParsedPart>(options: ResourceBatchOptions<Parsed>): GatewayHandler {
  const { config, versions, hasCollection, next } = options;
  const methods = new Map<string, GatewayHandler>([
    [
      "POST",
      async (request) => {
        const address = parseAddress(request.path);
        const served = { versions: await versions(), publicUrl: config.publicUrl };
        const query = new URLSearchParams(request.rawQuery);
        const { version } = negotiateVersion(request, address, query, served);
        return handleBatch(request, batchInterface(options, `/api/v${version.number}`));
      },
    ],
  ]);
  return (request) => {
    if (!BATCH_PATH.test(request.path)) return next(request);
    const isRow = !hasBatchType(request) && hasCollection(BATCH_COLLECTION);
    return isRow ? next(request) : dispatchMethod(methods, request);
  };
}

function batchInterface<Parsed extends ParsedPart>(
  { config, catalog, pipeline }: ResourceBatchOptions<Parsed>,
  base: string,
): BatchInterface<Parsed> {
  return {
    pipeline,
    config,
    readList: readOperations,
    scopeOf: () => {
      const current = catalog();
      const schema = exposedSchemas(current)[0]?.name ?? "public";
      return { catalog: current, schema, timezone: null, rollback: false };
    },
    toFullPath: (path) => (isPathUnder("/api", path.split("?", 1)[0]!) ? path : `${base}${path}`),
    headersOf: inheritHeaders,
    isDecided: isPlainInsert,
    readsFurther: ({ needsTransaction, resource }) => needsTransaction || requestsLinks(resource),
    respond: (responses) => ({
      status: 200,
      headers: { "Content-Type": "application/json; charset=utf-8" },
      body: Buffer.concat([OPENING, listResponses(responses), CLOSING]),
    }),
  };
}

/** Reads `{"operations": […]}`, or the list itself. */
async function readOperations(body: Buffer, { signal }: GatewayRequest): Promise<Buffer> {
  const found = await runStepwise(readJsonRecords(body, LIST_LIMITS), signal);
  if (found.kind === "list" || found.kind === "invalid") return body;
  const members = found.kind === "object" ? found.records[0]!.members() : null;
  const operations = members?.size === 1 ? members.get(OPERATIONS) : undefined;
  if (operations?.text.startsWith("[")) return Buffer.from(operations.text);
  throw invalidBatch("The body of a batch is an object with operations, a list of requests.");
}

/** Returns true for a plain insert. Responses to all other requests can be errors: a row does not exist, or differs from the client's copy. */
function isPlainInsert({ needsTransaction, resource: { request, target } }: ParsedPart): boolean {
  return request.method === "POST" && target.action === null && !needsTransaction;
}
