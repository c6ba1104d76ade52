import { API_RESOURCE, type Authenticator, type Caller, type Claims, isAdministrator } from "#accounts/identity";
import type { Catalog } from "#catalog";
import { type Config, isEmbedded } from "#config";
import { type FindBodyLimit, type GatewayHandler, type GatewayRequest, makeBodyLimits, TABLE_PREFIX } from "#http";
import { makeServiceCounters, type ServiceCounters } from "#http/observability";
import type { LiveQueries } from "#live";
import { makeRequestPlanner, type Plan, type PlanRequest, type RunResult } from "#planner";
import type { Intent, ResponseOptions } from "#planner/intent";
import { quotedName } from "#postgres/client";
import { type Database, isSerializationFailure } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import type { Dialect, ParsedRequest, Pipeline, ReadyResponse } from "#rest-gateway/dialect";
import {
  handleBatch,
  handleLiveRequest,
  handleRequest,
  isLiveRequest,
  makeIdempotentRunner,
  makeStatementContexts,
  prepareTask,
  type QueueTask,
  type TaskHandler,
} from "#rest-gateway/pipeline";
import type { CacheHits } from "#runtime";
import { runStepwise } from "#runtime/concurrency";
import { authenticateTableCaller } from "./authenticate.ts";
import {
  comparisonOptions,
  hasPreconditions,
  makePrecheck,
  preconditionFailed,
  type TagRequest,
  tagRequestOf,
  withEntityTag,
} from "./conditional-requests.ts";
import { missingGrantHint, toTableError, visibleColumnHint } from "./explain-error.ts";
import { NO_BODY, type ParsedBody, parseBody } from "./parse/body.ts";
import { type Preferences, parseContentType } from "./parse/headers.ts";
import { queryWithoutApiKey } from "./parse/query-string.ts";
import {
  hasRequestBody,
  parseTableRequest,
  parseTableTarget,
  type TableParseSettings,
  type TableRequest,
} from "./parse/request.ts";
import { RequestShapeCache, requestShape, type ShapedRequest } from "./request-shape-cache.ts";
import { allowedMethods, makeRootDescription } from "./respond/describe.ts";
import { respond } from "./respond/respond.ts";
import { isTableBatch, makeTableBatch } from "./table-batch.ts";

type TableDependencies = {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly database: Database;
  readonly catalog: () => Catalog;
  /** Queues a call. If null, calls run at once, even with `Prefer: respond-async`. */
  readonly queueTask?: QueueTask | null;
  readonly counts?: ServiceCounters;
  /** The live queries; if null, no response stays up to date. */
  readonly live?: LiveQueries | null;
};

type DialectDependencies = Pick<TableDependencies, "config" | "authenticator" | "catalog"> & {
  readonly counts: ServiceCounters;
};

type TableHandlers = TaskHandler & {
  readonly handle: GatewayHandler;
  /** Handles requests of interfaces that have authenticated the caller themselves. */
  readonly handleAs: (request: GatewayRequest, caller: Caller) => ReturnType<typeof handleRequest>;
};

type ParsedTableRequest = ParsedRequest & {
  readonly intent: Intent;
  readonly table: TableRequest;
  /** The request for an ETag; null if there is none. */
  readonly tagRequest: TagRequest | null;
};

const SHAPING_HEADERS = ["content-type", "content-profile", "accept", "prefer"] as const;

/** Makes the interface of `/rest/v1`. */
export function makeTableInterface(dependencies: TableDependencies): TableHandlers {
  const { config, authenticator, database, catalog, queueTask = null, live = null } = dependencies;
  const { counts = makeServiceCounters() } = dependencies;
  const dialect = new TableDialect({ config, authenticator, catalog, counts });
  const pipeline: Pipeline<ParsedTableRequest> = {
    name: "table",
    dialect,
    database,
    contextOf: makeStatementContexts(config, {
      interfaceName: "table",
      pathPrefix: TABLE_PREFIX,
      hoistedSettings: config.hoistedSettings,
    }),
    choosesIsolation: true,
    preRequest: preRequestStatement(config),
    // The names come from the client, so a newer catalogue does not change the request.
    refreshCatalog: null,
    queueTask,
    idempotency: makeIdempotentRunner(config, counts),
    recorder: counts.recorder,
    shapingHeaders: SHAPING_HEADERS,
    queryWithoutApiKey: ({ headers, rawQuery }) => queryWithoutApiKey(headers, rawQuery),
    optionsStatus: 200,
  };

  const isRolledBackBy = (preferences: Preferences) => isRolledBack(config, { preferences });
  const settings = tableParseSettings(config);
  const batch = makeTableBatch({ config, catalog, pipeline, settings, isRolledBack: isRolledBackBy });

  return {
    handle: (request) => {
      if (live && isLiveRequest(request)) return handleLiveRequest(request, pipeline, live);
      return isTableBatch(request) ? handleBatch(request, batch) : handleRequest(request, pipeline);
    },
    handleAs: (request, caller) => handleRequest(request, pipeline, { caller, transaction: null }),
    prepareTask: (request, caller) => prepareTask(request, caller, pipeline),
    explainError: (thrown, caller) => dialect.explainError(thrown, caller, null, null),
  };
}

/** The dialect with PostgREST's grammar and responses. */
class TableDialect implements Dialect<ParsedTableRequest> {
  readonly #config: Config;
  readonly #authenticator: Authenticator;
  readonly #catalog: () => Catalog;
  readonly #shapeCache: RequestShapeCache;
  readonly #plan: PlanRequest;
  readonly #settings: Omit<TableParseSettings, "timeZones">;
  readonly #bodyLimitOf: FindBodyLimit;
  readonly #describe: ReturnType<typeof makeRootDescription>;

  constructor({ config, authenticator, catalog, counts }: DialectDependencies) {
    this.#config = config;
    this.#authenticator = authenticator;
    this.#catalog = catalog;
    this.#shapeCache = new RequestShapeCache(counts.forms, config.anonRole);
    this.#plan = makeTablePlanner(config, counts.plans);
    this.#settings = tableParseSettings(config);
    this.#bodyLimitOf = makeBodyLimits(config);
    this.#describe = makeRootDescription(config);
  }

  authenticate(request: GatewayRequest) {
    return authenticateTableCaller(request, this.#authenticator, this.#config.requireApiKey, API_RESOURCE);
  }

  validateClaims(claims: Claims) {
    return this.#authenticator.validateClaims(claims);
  }

  parse(request: GatewayRequest, caller: Caller) {
    if (!hasRequestBody(request.method)) return this.#parse(request, caller, NO_BODY);
    return this.#readBody(request, caller).then((content) => this.#parse(request, caller, content));
  }

  plan(parsed: ParsedTableRequest, { role }: Caller, intent: Intent, planKey: object | undefined) {
    const { table: request, catalog } = parsed;
    const options = intent === parsed.intent ? responseOptions(request) : comparisonOptions(request);
    return this.#plan(intent, options, catalog, role, planKey);
  }

  respond({ table, tagRequest }: ParsedTableRequest, plan: Plan, result: RunResult) {
    const response = respond(table, plan, decodeBinaryBody(result, plan));
    return tagRequest ? withEntityTag(response, tagRequest, result, plan) : response;
  }

  explainError(thrown: unknown, caller: Caller, parsed: ParsedTableRequest | null, intent: Intent | null) {
    const { role } = caller;
    const isAnonymous = role === this.#config.anonRole;
    if (parsed?.precheck && isSerializationFailure(thrown)) return preconditionFailed(thrown);
    return toTableError(thrown, {
      anonymous: isAnonymous,
      columnHint: (hint) => visibleColumnHint(hint, this.#catalog(), role),
      grantHint: (message) =>
        this.#showsGrants(caller) ? missingGrantHint(message, { role, isAnonymous, intent }, this.#catalog()) : null,
    });
  }

  /** Returns true if errors may show grants, which are hidden from callers in production. */
  #showsGrants(caller: Caller): boolean {
    const { usersAccess } = this.#config;
    return (usersAccess === "open" && isEmbedded(this.#config)) || isAdministrator(caller);
  }

  allowedMethods({ method, path, headers }: GatewayRequest, { role }: Caller) {
    const catalog = this.#catalog();
    const target = { method, path: pathBelowPrefix(path), headers };
    const { resource, profile } = parseTableTarget(target, this.#settingsFor(catalog));
    return allowedMethods(resource, { schema: profile.schema, catalog, role });
  }

  async #readBody(request: GatewayRequest, caller: Caller): Promise<ParsedBody> {
    const body = await request.readBody(this.#bodyLimitOf(caller));
    const format = parseContentType(request.headers["content-type"]);
    return runStepwise(parseBody(body, format, request.holdMemory), request.signal);
  }

  #parse(request: GatewayRequest, caller: Caller, content: ParsedBody): ParsedTableRequest | ReadyResponse | null {
    const catalog = this.#catalog();
    const { method, rawQuery, headers } = request;
    const raw = { method, path: pathBelowPrefix(request.path), rawQuery, headers, content };
    const shape = requestShape(raw);
    const cached = shape && this.#shapeCache.find(shape, rawQuery, caller.role, catalog);
    if (cached) return this.#toParsed(request, cached, catalog, content);
    const table = parseTableRequest(raw, this.#settingsFor(catalog));
    const { action } = table;
    if (action.kind === "options") return null;
    if (action.kind === "describe") {
      return { response: this.#describe({ request, parsed: table, tables: action.tables, caller, catalog }) };
    }
    const parsed = { request: table, intent: action.intent };
    const planKey = shape ? this.#shapeCache.add(shape, rawQuery, caller.role, parsed) : undefined;
    return this.#toParsed(request, { ...parsed, planKey }, catalog, content);
  }

  #toParsed(
    { method, headers }: GatewayRequest,
    { request: table, intent, planKey }: Omit<ShapedRequest, "planKey"> & Pick<ParsedRequest, "planKey">,
    catalog: Catalog,
    { body }: ParsedBody,
  ): ParsedTableRequest {
    const isConditional = hasPreconditions(method, headers);
    return {
      catalog,
      intent,
      schema: table.profile.schema,
      timezone: table.preferences.timezone,
      version: null,
      body,
      rollback: isRolledBack(this.#config, table),
      needsTransaction: isConditional,
      // The compared rows, including those of relations, do not change until the write has ended.
      ...(isConditional && { precheck: makePrecheck(intent, headers, this.#config), isolation: "serializable" }),
      isQueueable: intent.kind === "call" && table.method === "POST",
      planKey,
      table,
      tagRequest: tagRequestOf(table, headers),
    };
  }

  #settingsFor({ timeZones }: Catalog): TableParseSettings {
    return { ...this.#settings, timeZones };
  }
}

function pathBelowPrefix(path: string): string {
  return path.slice(TABLE_PREFIX.length);
}

/** Decodes a binary body, which is in hexadecimal. */
function decodeBinaryBody(result: RunResult, { body: bodyPlan }: Plan): RunResult {
  const isBinary = (bodyPlan.kind === "aggregate" || bodyPlan.kind === "value") && bodyPlan.isBinary;
  if (!isBinary || result.body === null) return result;
  return { ...result, body: Buffer.from(String(result.body), "hex") };
}

function responseOptions({ accept, method, preferences }: TableRequest): ResponseOptions {
  return {
    formats: accept,
    includesBody: method !== "HEAD",
    maxAffected: preferences.handling === "strict" ? preferences.maxAffected : null,
  };
}

function isRolledBack({ txEnd }: Config, { preferences }: Pick<TableRequest, "preferences">): boolean {
  return preferences.tx === null ? txEnd.startsWith("rollback") : preferences.tx === "rollback";
}

/** Returns the call of PGRST_DB_PRE_REQUEST, a name with or without its schema. */
export function preRequestStatement({ preRequest: name }: Config): Statement | undefined {
  if (name === null) return undefined;
  return { text: `select ${quotedName(...name.split("."))}()`, values: [] };
}

/** Returns the settings that the grammar depends on. */
export function tableParseSettings({
  schemas,
  rootSpec,
  openapiMode,
  txEnd,
}: Config): Omit<TableParseSettings, "timeZones"> {
  return {
    schemas,
    // The schema is that of the profile.
    rootFunction: rootSpec?.split(".").at(-1) ?? null,
    describesItself: openapiMode !== "disabled",
    txOverride: txEnd.endsWith("allow-override"),
  };
}

export function makeTablePlanner(config: Config, hits?: CacheHits): PlanRequest {
  const { aggregates, maxRows, safeWrites, legacyTargetNames, planEnabled: explainEnabled, anonRole } = config;
  const options = { aggregates, maxRows, safeWrites, legacyTargetNames, explainEnabled, anonymousRole: anonRole };
  return makeRequestPlanner(options, hits);
}
