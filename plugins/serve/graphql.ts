import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { makeBodyLimits } from "../../engine/caller/body-limit.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import { makeContexts } from "../../engine/caller/context.ts";
import { makeCrossSite } from "../../engine/caller/cross-site.ts";
import { makeFootings } from "../../engine/caller/footing.ts";
import { occasionOf } from "../../engine/caller/occasion.ts";
import { settingsOfRole } from "../../engine/caller/role-settings.ts";
import { makeSearchPaths } from "../../engine/caller/search-path.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { makeCatchUp } from "../../engine/catalog/catch-up.ts";
import { exposedSchemas } from "../../engine/catalog/exposed-schemas.ts";
import type { CatalogKeeper } from "../../engine/catalog/keep.ts";
import type { Config } from "../../engine/config/config.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { Database } from "../../engine/database/database.ts";
import { shortestLimit } from "../../engine/database/duration.ts";
import type { Context } from "../../engine/database/statement.ts";
import type { Listener } from "../../engine/listen.ts";
import type { Logger } from "../../engine/log.ts";
import { SharedBytes } from "../../engine/memory/shared-bytes.ts";
import type { SocketMemory } from "../../engine/memory/socket-memory.ts";
import { type Counts, makeCounts } from "../../engine/metrics/counts.ts";
import { oncePer } from "../../engine/once-per.ts";
import type { Tracing } from "../../engine/tracing/tracing.ts";
import { makePreset } from "../preset.ts";
import { makeExplainer } from "./errors.ts";
import { makeAskGiven } from "./event-count.ts";
import { makeLeaseQuestions } from "./event-lease.ts";
import { Events } from "./events.ts";
import { makeExplorer } from "./explorer.ts";
import { makeHandle } from "./handle.ts";
import type { HttpRequest, HttpResponse } from "./http.ts";
import { makeIntrospection } from "./introspection.ts";
import { type Circumstances, makePrepare, type Operation } from "./operation.ts";
import { makeFindDocument } from "./persisted-operations.ts";
import { makePgService } from "./pg-service.ts";
import { sampleQuery } from "./sample-query.ts";
import { SchemaKeeper } from "./schema-keeper.ts";
import { Sockets } from "./socket/sockets.ts";

export const GRAPHQL_PATH = "/graphql";
const EXPLORER_PATH = "/graphiql";

export type GraphQLServices = {
  readonly config: Config;
  /** Those of now: the settings they are made of may change. */
  readonly callers: () => Callers;
  readonly catalog: CatalogKeeper;
  readonly database: Database;
  readonly listener: Listener;
  readonly loginRole: string;
  /** Of a client, as far as the proxies in front are to be believed. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  readonly log: Logger;
  readonly counts?: Counts;
  readonly tracing?: Tracing | null;
  /** For how many milliseconds the first schema is waited for; then it is built on while the rest is served. */
  readonly patienceMs?: number | undefined;
  readonly memory: SocketMemory;
};

export type GraphQL = {
  /** What answers below each path; the explorer is among them unless it is switched off. */
  readonly folders: Readonly<Record<string, (request: HttpRequest) => Promise<HttpResponse>>>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** A first query for a table's rows; null where its field has another name. */
  sampleQuery(table: string): string | null;
  state(): GraphQLState;
  /** Lets operations on sockets end, for so long, and closes the sockets. */
  hangUp(milliseconds: number): Promise<void>;
  close(): Promise<void>;
};

export type GraphQLState = {
  /** Why the schema that is served may be out of date, or why there is none. */
  readonly fault: string | null;
  /** The first schema is still being built. */
  readonly isAwaited: boolean;
  /** What the schema cannot be built with, and is therefore built without. */
  readonly leftOut: readonly string[];
  readonly sockets: number;
  readonly operations: number;
  readonly subscriptions: number;
  readonly topics: number;
};

/** GraphQL over HTTP and WebSocket: a schema made of the catalogue, kept up with it, and everything that serves it. */
export async function openGraphQL(services: GraphQLServices): Promise<GraphQL> {
  const {
    config,
    callers,
    catalog,
    database,
    listener,
    loginRole,
    clientAddress,
    log,
    counts = makeCounts(),
    tracing = null,
    patienceMs,
    memory,
  } = services;
  const findDocument = await makeFindDocument({
    folder: config.graphqlPersistedOperations,
    only: config.graphqlPersistedOnly,
  });
  const keeper = new SchemaKeeper({
    preset: () =>
      makePreset({
        pgService: makePgService({
          database,
          schemas: exposedSchemas(catalog.current()).map(({ name }) => name),
          loginRole,
        }),
        maxPageSize: config.maxPageSize,
      }),
    catalog: () => catalog.current(),
    catchUp: makeCatchUp(catalog),
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
    onInvalid: () => catalog.suspect(),
    log,
  });
  const stopFollowing = catalog.onChange(() => keeper.renew());
  await keeper.start(patienceMs);

  const contextOf = makeOperationContexts(config, () => catalog.current());
  const asOwner: AsOwner = (work) => database.asOwner(work);
  const askLease = makeLeaseQuestions({ asOwner, log });
  const events = new Events({ listener, askGiven: makeAskGiven(asOwner), askLease, log });
  const introspection = makeIntrospection(config);
  const explain = makeExplainer({
    catalog: () => catalog.current(),
    callers,
    introspection,
    log,
    errors: counts.errors,
  });
  // As objects rows take about ten times their length.
  const most = {
    operation: Math.ceil(config.maxAnswerBytes / 4),
    together: config.maxAnswerBytes,
    answers: 2 * config.maxAnswerBytes,
  };
  const prepare = makePrepare({
    schemaOf: (role) => keeper.current(role),
    introspection,
    database,
    events,
    contextOf,
    most,
    anonymous: {
      role: config.anonRole,
      mostPlanned: config.graphqlMaxAnonymousPlanned,
      mostAnswerBytes: Math.ceil(config.maxAnswerBytes / 8),
    },
    tracing,
  });
  const crossSite = makeCrossSite(config);
  const shared = { path: GRAPHQL_PATH, callers, crossSite, findDocument, prepare, explain };
  const sockets = new Sockets({
    services: {
      ...shared,
      mostOperations: config.graphqlMaxSocketOperations,
      memory,
      openDocuments: new SharedBytes(memory.documents),
    },
    corsOrigins: config.corsOrigins,
    clientAddress,
    log,
  });

  const handle = makeHandle({
    ...shared,
    schema: keeper,
    internalErrorStatus: Number(config.graphqlInternalErrorStatus),
    bodyLimitOf: makeBodyLimits(config, config.graphqlMaxBodyBytes),
  });
  const explore = makeExplorer({ explorer: EXPLORER_PATH, graphql: GRAPHQL_PATH });
  return {
    folders: { [GRAPHQL_PATH]: handle, ...(config.graphqlExplorer && { [EXPLORER_PATH]: explore }) },
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
    sampleQuery: (table) => {
      const served = keeper.isServing ? keeper.current(config.anonRole) : null;
      return served === null || served instanceof Promise ? null : sampleQuery(served.schema, table);
    },
    state: () => ({
      fault: keeper.fault,
      isAwaited: keeper.isAwaited,
      leftOut: keeper.leftOut.filter(({ isFault }) => isFault).map(({ object }) => object),
      ...sockets.state(),
      ...events.state(),
    }),
    hangUp: (milliseconds) => sockets.close(milliseconds),
    close: async () => {
      stopFollowing();
      await sockets.close(0);
      events.close();
      keeper.close();
    },
  };
}

/** What the statements of an operation run as. */
function makeOperationContexts(
  config: Config,
  catalog: () => Catalog,
): (circumstances: Circumstances, kind: Operation["kind"]) => Context {
  const contexts = makeContexts(config);
  const footing = makeFootings(config);
  const searchPathFrom = makeSearchPaths(config.extraSearchPath);
  /** Types and operators of extensions are found by it, such as those of citext. */
  const searchPathOf = oncePer((current: Catalog) => searchPathFrom(exposedSchemas(current)[0]?.name ?? "public"));
  const patience = patienceOf(config.graphqlStatementTimeout, config.statementTimeout);
  const patienceOfAnonymous = patienceOf(
    config.graphqlStatementTimeout,
    shortestLimit(config.statementTimeout, config.anonStatementTimeout),
  );
  return (circumstances, kind) => {
    const { caller } = circumstances.asker;
    const { role, settings } = contexts(
      caller,
      occasionOf("graphql", { ...circumstances, id: circumstances.requestId }),
    );
    const current = catalog();
    return {
      role,
      settings: [
        searchPathOf(current),
        ...(role === config.anonRole ? patienceOfAnonymous : patience),
        ...settingsOfRole(current.roles.get(role)),
        ...settings,
      ],
      callerKey: () => callerKey(caller.claims, circumstances.address),
      // What a subscription tells has only just happened.
      ...(kind !== "subscription" && footing(caller, circumstances)),
    };
  };
}

/** Less than others have: lists within lists are asked for in a few words, by anybody. A role's own limit comes after it. */
function patienceOf(ofGraphQL: number, ofAll: number): Context["settings"] {
  const seconds = shortestLimit(ofGraphQL, ofAll);
  return seconds === 0 ? [] : [["statement_timeout", String(seconds * 1000)]];
}
