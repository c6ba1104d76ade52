import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { LimitCreatedUsers } from "#accounts";
import {
  type Authenticator,
  callerKey,
  makeCallerSettings,
  makeSearchPathSetting,
  roleSettings,
} from "#accounts/identity";
import { type Catalog, exposedSchemas } from "#catalog";
import { type CatalogKeeper, makeCatalogRefresh } from "#catalog/loading";
import type { Config } from "#config";
import { makeBodyLimits, makeCsrfProtection, makeReadYourWrites, readSessionCookie } from "#http";
import { makeServiceCounters, type ServiceCounters, type Tracing } from "#http/observability";
import { requestInfoOf } from "#http/request-info";
import type { SocketMemory } from "#http/sockets";
import type { LiveQueries } from "#live";
import { isKnownTo, makePreset, type OmittedObject } from "#plugins";
import type { Listener } from "#postgres/client";
import { type AsOwner, type Database, shorterLimit } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { memoizePerObject, SharedBytes } from "#runtime";
import { Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { makeIntrospectionAccess } from "../documents/introspection-access.ts";
import { type ExplainError, makeErrorExplainer } from "../operations/errors.ts";
import { makeLeaseQueries } from "../operations/event-lease.ts";
import { makeReadIssuedNumbers, RowEventHub } from "../operations/events.ts";
import type {
  OperationDependencies,
  OperationRequestInfo,
  OperationStages,
  PreparedOperation,
  ReplaceStages,
} from "../operations/operation.ts";
import { makeOperationStages } from "../operations/operation-stages.ts";
import { makeRowsWriter } from "../operations/rows-writer.ts";
import { makePgService } from "../schemas/pg-service.ts";
import { privilegesOf } from "../schemas/role-schemas.ts";
import { SchemaKeeper } from "../schemas/schema-keeper.ts";
import { makeExplorer, sampleQuery, sampleTablesQuery } from "./explorer.ts";
import { EXPLORER_PATH, GRAPHQL_PATH } from "./paths.ts";
import { readCredentials } from "./request/authenticate.ts";
import { makeGraphqlHandler } from "./request/handle-request.ts";
import type { GraphqlHttpRequest, GraphqlHttpResponse } from "./request/http-messages.ts";
import { makeFindDocument } from "./request/persisted-operations.ts";
import { GraphqlSockets } from "./socket/sockets.ts";

export type GraphqlDependencies = {
  readonly config: Config;
  /** A function, since their settings may change. */
  readonly authenticator: () => Authenticator;
  readonly catalog: CatalogKeeper;
  readonly database: Database;
  readonly listener: Listener;
  readonly live: LiveQueries;
  readonly loginRole: string;
  /** The client's address, as reported by trusted proxies. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  /** Counts the users that callers create. Null: no limit. */
  readonly limitCreatedUsers?: LimitCreatedUsers | null;
  readonly log: Logger;
  readonly counts?: ServiceCounters;
  readonly tracing?: Tracing | null;
  readonly memory: SocketMemory;
  readonly supervisor?: Supervisor;
  readonly replaceStages?: ReplaceStages | undefined;
};

/** The loaded interface. */
export type StartedGraphql = {
  /** Handlers by path; includes the explorer unless it is disabled. */
  readonly folders: Readonly<Record<string, (request: GraphqlHttpRequest) => Promise<GraphqlHttpResponse>>>;
  /** Resolves after the first build of the schema, successful or not, or after a timeout. */
  readonly firstBuild: Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** An example query for a table's rows; null when its field has another name, and while there is no schema. */
  sampleQuery(table: string): string | null;
  /** Objects that callers may use and that the schema does not have. */
  omitted(): readonly OmittedObject[];
  state(): GraphqlState;
  /** Waits up to so many milliseconds for operations on sockets, then closes the sockets. */
  closeSockets(milliseconds: number): Promise<void>;
  close(): Promise<void>;
};

export type LeftOutObject = {
  /** The object's description, as SQL names it: `table public.items`. */
  readonly object: string;
  /** True if the anonymous role may use it. */
  readonly isPublic: boolean;
};

export type GraphqlState = {
  /** Why the served schema may be outdated, or why there is none. */
  readonly fault: string | null;
  /** The first schema is still being built. */
  readonly isBuildingFirst: boolean;
  /** Objects that the schema was built without because the build failed with them. */
  readonly leftOut: readonly LeftOutObject[];
  readonly sockets: number;
  readonly operations: number;
  readonly subscriptions: number;
  readonly topics: number;
};

type StartOptions = {
  /** How many milliseconds the first build of the schema may take, if not the default. */
  readonly schemaWaitMs?: number | undefined;
};

/** Starts GraphQL over HTTP and WebSocket, with a schema that follows the catalog. */
export async function startGraphql(
  dependencies: GraphqlDependencies,
  { schemaWaitMs }: StartOptions = {},
): Promise<StartedGraphql> {
  const { config, authenticator, catalog, clientAddress, memory, log, counts = makeServiceCounters() } = dependencies;
  const findDocument = await makeFindDocument({
    folder: config.graphqlPersistedOperations,
    only: config.graphqlPersistedOnly,
  });
  const keeper = makeSchemaKeeper(dependencies, counts);
  const stopFollowing = catalog.onChange(() => keeper.rebuild());
  const firstBuild = keeper.start(schemaWaitMs);

  const events = openRowEvents(dependencies);
  const execution = makeExecution(dependencies, { keeper, events, counts });
  const endpoint = { path: GRAPHQL_PATH, authenticator, csrf: makeCsrfProtection(config), findDocument, ...execution };
  const sockets = new GraphqlSockets({
    services: {
      ...endpoint,
      maxOperations: config.graphqlMaxSocketOperations,
      memory,
      openDocuments: new SharedBytes(memory.documents),
    },
    corsOrigins: config.corsOrigins,
    clientAddress,
    log,
  });
  const handle = makeGraphqlHandler({
    ...endpoint,
    schema: keeper,
    internalErrorStatus: Number(config.graphqlInternalErrorStatus),
    bodyLimitOf: makeBodyLimits(config, config.graphqlMaxBodyBytes),
  });
  return {
    folders: { [GRAPHQL_PATH]: handle, ...(config.graphqlExplorer && explorerFolder(dependencies, keeper)) },
    firstBuild,
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
    sampleQuery: (table) => {
      const served = keeper.isServing ? keeper.current(config.anonRole) : null;
      return served === null || served instanceof Promise ? null : sampleQuery(served.schema, table);
    },
    omitted: () => keeper.omitted,
    state: () => ({
      fault: keeper.fault,
      isBuildingFirst: keeper.isBuildingFirst,
      leftOut: keeper.omitted
        .filter(({ isBuildFault }) => isBuildFault)
        .map((omitted) => ({
          object: omitted.object,
          isPublic: isKnownTo(config.anonRole, omitted, catalog.current()),
        })),
      ...sockets.state(),
      ...events.state(),
    }),
    closeSockets: (milliseconds) => sockets.close(milliseconds),
    close: async () => {
      stopFollowing();
      await sockets.close(0);
      events.close();
      keeper.close();
    },
  };
}

function explorerFolder(dependencies: GraphqlDependencies, keeper: SchemaKeeper) {
  const explorer = makeExplorer({
    explorer: EXPLORER_PATH,
    graphql: GRAPHQL_PATH,
    sampleQueryFor: (request) => sampleTablesQueryFor(request, dependencies, keeper),
  });
  return { [EXPLORER_PATH]: explorer };
}

/** Null while there is no schema. */
async function sampleTablesQueryFor(
  request: GraphqlHttpRequest,
  { authenticator, catalog }: GraphqlDependencies,
  keeper: SchemaKeeper,
): Promise<string | null> {
  const session = readSessionCookie(request.headers);
  const { caller } = await authenticator().authenticateOrAnonymous({ ...readCredentials(request), session });
  request.admit(caller);
  if (!keeper.isServing) return null;
  const { schema } = await keeper.current(caller.role);
  return sampleTablesQuery(schema, privilegesOf(catalog.current(), [caller.role]));
}

/** The schemas by role, with the limits of the documents that are checked against them. */
function makeSchemaKeeper(
  { config, catalog, database, loginRole, log }: GraphqlDependencies,
  counts: ServiceCounters,
): SchemaKeeper {
  return new SchemaKeeper({
    preset: () =>
      makePreset({
        pgService: makePgService({
          database,
          schemas: exposedSchemas(catalog.current()).map(({ name }) => name),
          loginRole,
        }),
        maxPageSize: config.maxPageSize,
        aggregates: config.aggregates,
        catalog: catalog.current(),
        nodes: config.graphqlNode,
      }),
    catalog: () => catalog.current(),
    catchUp: makeCatalogRefresh(catalog),
    anonRole: config.anonRole,
    limits: {
      depth: config.graphqlMaxDepth,
      complexity: config.graphqlMaxComplexity,
      tokens: config.graphqlMaxTokens,
      aliases: config.graphqlMaxAliases,
      directives: config.graphqlMaxDirectives,
      rootFields: config.graphqlMaxRootFields,
    },
    hits: counts.operations,
    onInvalid: () => catalog.checkSoon(),
    log,
  });
}

function openRowEvents(dependencies: GraphqlDependencies): RowEventHub {
  const { database, listener, log, supervisor = new Supervisor({ log }) } = dependencies;
  const asOwner: AsOwner = (work) => database.asOwner(work);
  const leaseQueries = makeLeaseQueries({ asOwner, log });
  const readIssuedNumbers = makeReadIssuedNumbers(asOwner);
  return new RowEventHub({ listener, readIssuedNumbers, leaseQueries, supervisor, log });
}

/** The stages of operations over HTTP and WebSocket, and how their errors are explained. */
function makeExecution(
  {
    config,
    authenticator,
    catalog,
    database,
    limitCreatedUsers = null,
    tracing = null,
    live,
    log,
    replaceStages = (stages) => stages,
  }: GraphqlDependencies,
  { keeper, events, counts }: { keeper: SchemaKeeper; events: RowEventHub; counts: ServiceCounters },
): { readonly explain: ExplainError; readonly stages: OperationStages } {
  const introspection = makeIntrospectionAccess(config);
  const dependencies: OperationDependencies = {
    schemaOf: (role) => keeper.current(role),
    upcomingSchemaOf: (role) => keeper.upcoming(role),
    whenUpcoming: () => keeper.whenUpcoming(),
    whenBuilt: () => keeper.whenBuilt(),
    introspection,
    database,
    catalog: () => catalog.current(),
    live,
    events,
    makeWriteRows: makeRowsWriter(() => catalog.current()),
    contextOf: makeOperationContexts(config, () => catalog.current()),
    // A response takes several times its length while it is parsed or normalized.
    byteLimits: {
      operation: Math.ceil(config.maxAnswerBytes / 4),
      together: Math.ceil(config.answerMemory / 8),
      answers: Math.ceil(config.answerMemory / 4),
    },
    anonymous: {
      role: config.anonRole,
      maxBranches: config.graphqlMaxAnonymousPlanned,
      maxResponseBytes: Math.ceil(config.maxAnswerBytes / 8),
    },
    limitCreatedUsers,
    tracing,
    recorder: counts.recorder,
    compilation: { outcomes: counts.operationOutcomes, log },
  };
  return {
    explain: makeErrorExplainer({
      catalog: () => catalog.current(),
      authenticator,
      introspection,
      errorVerbosity: config.errorVerbosity,
      log,
      errors: counts.errors,
    }),
    stages: replaceStages(makeOperationStages(dependencies), dependencies),
  };
}

/** The role and settings with which the statements of an operation run. */
function makeOperationContexts(
  config: Config,
  catalog: () => Catalog,
): (requestInfo: OperationRequestInfo, kind: PreparedOperation["kind"]) => StatementContext {
  const contexts = makeCallerSettings(config);
  const readYourWrites = makeReadYourWrites(config);
  const searchPathFrom = makeSearchPathSetting(config.extraSearchPath);
  /** Needed for types and operators of extensions, such as citext's. */
  const searchPathOf = memoizePerObject((current: Catalog) =>
    searchPathFrom(exposedSchemas(current)[0]?.name ?? "public"),
  );
  const timeout = statementTimeoutSettings(config.graphqlStatementTimeout, config.statementTimeout);
  const anonymousTimeout = statementTimeoutSettings(
    config.graphqlStatementTimeout,
    shorterLimit(config.statementTimeout, config.anonStatementTimeout),
  );
  return (requestInfo, kind) => {
    const { caller } = requestInfo.authentication;
    const { role, settings } = contexts(
      caller,
      requestInfoOf("graphql", { ...requestInfo, id: requestInfo.requestId }),
    );
    const current = catalog();
    return {
      role,
      settings: [
        searchPathOf(current),
        ...(role === config.anonRole ? anonymousTimeout : timeout),
        ...roleSettings(current.roles.get(role)),
        ...settings,
      ],
      callerKey: () => callerKey(caller.claims, requestInfo.address),
      // Events are newer than any replica may be.
      ...(kind !== "subscription" && readYourWrites(caller, requestInfo)),
    };
  };
}

/** Shorter than the other interfaces' limit, since a short document can select nested lists. A role's own limit follows it. */
function statementTimeoutSettings(ofGraphQL: number, ofAll: number): StatementContext["settings"] {
  const seconds = shorterLimit(ofGraphQL, ofAll);
  return seconds === 0 ? [] : [["statement_timeout", String(seconds * 1000)]];
}
