import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { OmittedObject } from "#plugins";
import type { GraphqlDependencies, GraphqlState, StartedGraphql } from "./server/graphql.ts";
import { EXPLORER_PATH, GRAPHQL_PATH } from "./server/paths.ts";
import type { GraphqlHttpRequest } from "./server/request/http-messages.ts";

export type GraphqlOptions = GraphqlDependencies & {
  /** How many milliseconds a load at the start waits for the first schema, if not the default; requests wait the default. */
  readonly schemaWaitMs?: number | undefined;
  /** Called when the first request loads GraphQL. */
  readonly onLoad?: (() => void) | undefined;
};

/** The interface, loaded or not. `sampleQuery` and `state` do not load it. */
export type GraphqlInterface = Omit<StartedGraphql, "firstBuild" | "omitted"> & {
  omitted(): Promise<readonly OmittedObject[]>;
};

const NOT_LOADED: GraphqlState = {
  ...{ fault: null, isBuildingFirst: false, leftOut: [] },
  ...{ sockets: 0, operations: 0, subscriptions: 0, topics: 0 },
};

/**
 * GraphQL over HTTP and WebSocket. Its modules and its schema take 30 MB and most of the time of a start, so the first request loads
 * them, unless the settings say that it is used.
 */
export async function openGraphql(options: GraphqlOptions): Promise<GraphqlInterface> {
  const { graphqlPreload, graphqlPersistedOperations, graphqlExplorer } = options.config;
  const graphql = new LoadedAtFirstUse(options);
  if (graphqlPreload || graphqlPersistedOperations !== null) await graphql.load(options.schemaWaitMs);
  const handle = (path: string) => (request: GraphqlHttpRequest) =>
    graphql.use(({ folders }) => folders[path]!(request));
  return {
    folders: {
      [GRAPHQL_PATH]: handle(GRAPHQL_PATH),
      ...(graphqlExplorer && { [EXPLORER_PATH]: handle(EXPLORER_PATH) }),
    },
    upgrade: (request, socket, head) => graphql.upgrade(request, socket, head),
    sampleQuery: (table) => graphql.started?.sampleQuery(table) ?? null,
    omitted: () => graphql.use(({ omitted }) => omitted()),
    state: () => graphql.state(),
    closeSockets: (milliseconds) => graphql.closeSockets(milliseconds),
    close: () => graphql.close(),
  };
}

class LoadedAtFirstUse {
  readonly #options: GraphqlOptions;
  #starting: Promise<StartedGraphql> | null = null;
  #started: StartedGraphql | null = null;
  /** The first schema is built, or the wait for it is over. */
  #isReady = false;

  constructor(options: GraphqlOptions) {
    this.#options = options;
  }

  /** Resolves after the first build of the schema, successful or not, or after a timeout. */
  async load(schemaWaitMs?: number): Promise<StartedGraphql> {
    this.#starting ??= this.#start(schemaWaitMs).catch((error) => {
      this.#starting = null;
      throw error;
    });
    const started = await this.#starting;
    await started.firstBuild;
    this.#isReady = true;
    return started;
  }

  /** Null before the first use. */
  get started(): StartedGraphql | null {
    return this.#started;
  }

  async use<T>(work: (graphql: StartedGraphql) => T | Promise<T>): Promise<T> {
    return work(this.#isReady ? this.#started! : await this.load());
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#isReady) this.#started!.upgrade(request, socket, head);
    else void this.#upgradeOnceLoaded(request, socket, head);
  }

  /** The first build is not reported as awaited: the requests that it is for wait. */
  state(): GraphqlState {
    const state = this.#started?.state() ?? NOT_LOADED;
    return this.#isReady ? state : { ...state, isBuildingFirst: false };
  }

  async closeSockets(milliseconds: number): Promise<void> {
    await this.#started?.closeSockets(milliseconds);
  }

  async close(): Promise<void> {
    const started = await this.#starting?.catch(() => null);
    await started?.close();
  }

  async #upgradeOnceLoaded(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const ignore = () => {};
    socket.on("error", ignore);
    try {
      const graphql = await this.load();
      socket.off("error", ignore);
      if (!socket.destroyed) graphql.upgrade(request, socket, head);
    } catch {
      socket.destroy();
    }
  }

  async #start(schemaWaitMs: number | undefined): Promise<StartedGraphql> {
    this.#options.onLoad?.();
    // The modules are loaded one after the other, so that the event loop is not held for the time that all take.
    await import("grafast/graphql");
    await nextTurn();
    await import("grafast");
    await nextTurn();
    await import("graphile-build");
    await nextTurn();
    await import("@dataplan/pg");
    await nextTurn();
    await import("graphile-build-pg");
    await nextTurn();
    await import("#plugins");
    await nextTurn();
    const { startGraphql } = await import("./server/graphql.ts");
    this.#started = await startGraphql(this.#options, { schemaWaitMs });
    return this.#started;
  }
}
