import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { ApiError } from "#runtime";
import { awaitedRetryDelay, retryDelay, type WorkReport } from "#runtime/concurrency";
import { findServer, type ServerFinder } from "../client/server-finder.ts";
import { type ConnectionEvents, PostgresConnection, type RunningStatement } from "./connection.ts";
import {
  type ConnectionCapabilities,
  findConnectionCapabilities,
  type SessionSettings,
} from "./connection-capabilities.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { AvailabilityMonitor, type DatabaseAvailability, type DatabaseLog } from "./database-availability.ts";
import { acquireTimeout, databaseUnreachable, noPrimary } from "./database-errors.ts";
import { keptForShort, type ShareLimits, sharesForReads, sharesForStreams, sharesForWrites } from "./fair-sharing.ts";
import { countFreeConnections, divideConnections, idealSizes, type PoolName } from "./pool-sizes.ts";
import { openPostgresSocket, type PostgresSocket } from "./postgres-socket.ts";
import { type ConnectionCounters, makeConnectionCounters } from "./prepared-statements.ts";
import { isOnStandby } from "./standby-check.ts";

const SWEEP_INTERVAL_MS = 250;
/** The interval of standby checks of a session behind a router. Without a router, a demotion ends the session. */
const PRIMARY_CHECK_INTERVAL_MS = 2_000;
const SIZE_QUERY_INTERVAL_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** The number of connections until the server has reported its spare connections. */
const INITIAL_CONNECTIONS = 8;
/** Reports requests that wait this long. A refusal counts for twice as long, because waiting requests make the next attempt follow sooner. */
const SHORT_AFTER_MS = 1_000;
const REFUSAL_HOLDS_MS = 2_000;
const MAX_PREPARED_STATEMENTS = 250;

/** The interval of the search for long reads while statements run. */
const TICK_INTERVAL_MS = 25;

type PoolTerms = {
  /** The maximum duration of a read in milliseconds, after which it counts as long or is interrupted. */
  readonly slice?: number;
  /** The number of connections that are reserved for statements that are known to be short. */
  readonly keptForShort?: (connections: number) => number;
  readonly limitsFor?: (connections: number, processors: number) => ShareLimits;
};

/** Only the read pool pipelines: its statements are known to be fast. In the other pools each statement has a connection to itself. */
const TERMS_BY_POOL: Readonly<Record<PoolName, PoolTerms>> = {
  read: { slice: 50 },
  write: { limitsFor: sharesForWrites },
  slow: { slice: 200, keptForShort, limitsFor: sharesForReads },
  stream: { limitsFor: sharesForStreams },
};

export type ConnectionPoolsOptions = SessionSettings & {
  readonly url: string;
  readonly applicationName: string;
  readonly log: DatabaseLog;
  readonly report: WorkReport;
  readonly onState: (condition: DatabaseAvailability) => void;
  readonly size: number;
  /** The maximum number of reads in flight per connection. */
  readonly pipelineDepth: number;
  /** The processors that Postgres shares with the service, within this process's limits; infinite if Postgres has its own. */
  readonly sharedProcessors: number;
};

type OpenSession = { readonly socket: PostgresSocket; readonly capabilities: ConnectionCapabilities };

export type ConnectionPoolState = {
  readonly connections: number;
  readonly max: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly preparedStatements: number;
  readonly counters: Readonly<ConnectionCounters>;
};

export type ConnectionPoolsState = DatabaseAvailability & {
  /** Null until the first connection. */
  readonly capabilities: ConnectionCapabilities | null;
  /** True if requests wait for connections that the server refuses. */
  readonly isShort: boolean;
  readonly pools: Readonly<Record<PoolName, ConnectionPoolState>>;
};

/** The connection pools for requests: as many connections as the server can spare; lost connections are reopened. */
export class ConnectionPools {
  readonly pools: Readonly<Record<PoolName, ConnectionPool>>;
  readonly #options: ConnectionPoolsOptions;
  readonly #availability: AvailabilityMonitor;
  readonly #connector: ConnectionOpener<OpenSession>;
  readonly #sweeper: NodeJS.Timeout;
  #ticker: NodeJS.Timeout | null = null;
  #capabilities: ConnectionCapabilities | null = null;
  #probing: Promise<ConnectionCapabilities> | null = null;
  #sizesAskedAt = Number.NEGATIVE_INFINITY;
  #areSizesKnown = false;
  /** The time of the last refusal of another connection. */
  #refusedAt = Number.NEGATIVE_INFINITY;
  readonly #finder: ServerFinder;
  #primaryAskedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ConnectionPoolsOptions) {
    const { log, onState } = options;
    this.#options = options;
    this.#finder = findServer(options.url);
    this.#availability = new AvailabilityMonitor(log, onState);
    this.#connector = new ConnectionOpener({
      connect: () => this.#connect(),
      onFailure: (error) => this.#onConnectFailure(error),
      isAwaited: () => this.#allPools.some((pool) => pool.waiting > 0),
    });
    this.pools = {
      read: this.#makePool("read"),
      write: this.#makePool("write"),
      slow: this.#makePool("slow"),
      stream: this.#makePool("stream"),
    };
    this.#resize(INITIAL_CONNECTIONS);
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  get state(): ConnectionPoolsState {
    const { read, write, slow, stream } = this.pools;
    const pools = { read: stateOf(read), write: stateOf(write), slow: stateOf(slow), stream: stateOf(stream) };
    return { ...this.#availability.current, capabilities: this.#capabilities, isShort: this.#isShort, pools };
  }

  countStatements(): number {
    return this.#allPools.reduce((sum, { inFlight, waiting }) => sum + inFlight + waiting, 0);
  }

  get #isShort(): boolean {
    const isRefused = performance.now() - this.#refusedAt < REFUSAL_HOLDS_MS;
    return isRefused && this.#allPools.some((pool) => pool.isShort(SHORT_AFTER_MS));
  }

  async close(): Promise<void> {
    await Promise.all(this.#allPools.map((pool) => pool.drain()));
    clearInterval(this.#sweeper);
    clearTimeout(this.#ticker ?? undefined);
    this.#connector.close();
  }

  /** Refuses all requests that wait for a connection. */
  refuseWaiting(): void {
    for (const pool of this.#allPools) pool.refuseWaiting();
  }

  runningStatements(): RunningStatement[] {
    const now = performance.now();
    return this.#allPools.flatMap(({ connections }) =>
      connections.flatMap((connection) => connection.runningStatements(now)),
    );
  }

  forgetStatements(): void {
    for (const pool of this.#allPools) pool.forgetStatements();
  }

  get #allPools(): readonly ConnectionPool[] {
    return Object.values(this.pools);
  }

  get #connectionCount(): number {
    return this.#usableConnections().length;
  }

  #usableConnections(): PostgresConnection[] {
    return this.#allPools.flatMap(({ connections }) => connections.filter(({ retiring }) => !retiring));
  }

  #makePool(name: PoolName): ConnectionPool {
    const { pipelineDepth, sharedProcessors } = this.#options;
    const depth = name === "read" ? pipelineDepth : 1;
    const { slice, limitsFor, ...terms } = TERMS_BY_POOL[name];
    const counters = makeConnectionCounters();
    return new ConnectionPool({
      ...(slice !== undefined && { slice }),
      ...terms,
      ...(limitsFor && { limitsFor: (connections) => limitsFor(connections, sharedProcessors) }),
      depth,
      counters,
      // One connection stays open, so that the service knows if the database is available.
      least: name === "read" ? 1 : 0,
      open: (events, isWanted) => this.#openConnection({ depth, counters }, events, isWanted),
      ...(this.#finder.requiresPrimary && { leaveStandby: (connection) => this.#leaveStandby(connection) }),
      refusal: () => this.#refusal(),
      onStart: this.#keepTicking,
    });
  }

  readonly #keepTicking = (): void => {
    // Responses that have arrived are processed first, so that our own delay is not counted as the server's.
    this.#ticker ??= setTimeout(() => setImmediate(this.#tick), TICK_INTERVAL_MS);
  };

  readonly #tick = (): void => {
    this.#ticker = null;
    const now = performance.now();
    for (const pool of this.#allPools) pool.interruptLongReads(now);
    if (this.#allPools.some(({ inFlight }) => inFlight > 0)) this.#keepTicking();
  };

  #refusal(): ApiError {
    const { status, reason, lacksPrimary } = this.#availability.current;
    if (status === "up") return acquireTimeout();
    return lacksPrimary ? noPrimary(reason) : databaseUnreachable(reason);
  }

  /** True if the primary has become a standby: behind a router its sessions stay open, so they are closed here. */
  async #leaveStandby(asked: PostgresConnection): Promise<boolean> {
    const { serverName } = asked;
    const askedAt = performance.now();
    if (!(await isOnStandby(asked))) return false;
    this.#finder.noteStandby(serverName);
    const isAffected = (connection: PostgresConnection) =>
      connection.serverName === serverName && connection.openedAt <= askedAt;
    for (const pool of this.#allPools) pool.retire(isAffected);
    return true;
  }

  /** Checks for a standby behind the router: if there are only reads, no error shows it. */
  #checkPrimary(now: number): void {
    if (!this.#capabilities?.isRouted || now - this.#primaryAskedAt < PRIMARY_CHECK_INTERVAL_MS) return;
    const connection = this.pools.read.connections.find(({ hasRoom }) => hasRoom);
    if (!connection) return;
    this.#primaryAskedAt = now;
    if (this.#finder.requiresPrimary) void this.#leaveStandby(connection);
  }

  async #openConnection(
    { depth, counters }: { readonly depth: number; readonly counters: ConnectionCounters },
    events: ConnectionEvents,
    isWanted: () => boolean,
  ): Promise<PostgresConnection | null> {
    const session = await this.#connector.open(isWanted);
    if (!session) return null;
    const { socket, capabilities } = session;
    this.#availability.up();
    void this.#adaptSizes();
    const maxPrepared = capabilities.preparesStatements ? MAX_PREPARED_STATEMENTS : 0;
    return new PostgresConnection(socket, events, { depth, counters, maxPrepared, transactions: capabilities });
  }

  async #connect(): Promise<OpenSession> {
    const { url, applicationName, report } = this.#options;
    const open = () => openPostgresSocket({ url, applicationName, connectTimeout: CONNECT_TIMEOUT_MS, report });
    const socket = await open();
    try {
      return { socket, capabilities: await this.#capabilitiesOf(socket, open) };
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Finds out the capabilities whenever no connection is open: another server or router may answer now. */
  async #capabilitiesOf(socket: PostgresSocket, open: () => Promise<PostgresSocket>): Promise<ConnectionCapabilities> {
    if (this.#capabilities && this.#connectionCount > 0) return this.#capabilities;
    this.#probing ??= findConnectionCapabilities(socket, this.#options, open).finally(() => {
      this.#probing = null;
    });
    const capabilities = await this.#probing;
    if (!isDeepStrictEqual(capabilities, this.#capabilities)) {
      if (capabilities.isRouted) this.#options.log.info(capabilities, "the database is behind a router");
      if (capabilities.settingMode === "distributed")
        this.#options.log.info(capabilities, "the database is distributed");
    }
    this.#capabilities = capabilities;
    return capabilities;
  }

  #onConnectFailure(error: Error): void {
    if (this.#connectionCount > 0) {
      this.#refusedAt = performance.now();
      this.#availability.exhausted(error);
    } else {
      this.#areSizesKnown = false;
      this.#sizesAskedAt = Number.NEGATIVE_INFINITY;
      this.#availability.down(error);
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const pool of this.#allPools) pool.sweep(now);
    if (this.#availability.current.status !== "up") return;
    void this.#adaptSizes();
    this.#checkPrimary(now);
  }

  /** Adapts the pools to the spare connections of the server, each time the server becomes available. */
  async #adaptSizes(): Promise<void> {
    const now = performance.now();
    if (this.#areSizesKnown || now - this.#sizesAskedAt < SIZE_QUERY_INTERVAL_MS) return;
    this.#sizesAskedAt = now;
    try {
      const available = (await countFreeConnections(this.#options.url)) + this.#connectionCount;
      this.#resize(available / 2);
      this.#areSizesKnown = true;
    } catch (error) {
      this.#options.log.warn({ err: error }, "could not ask the database how many connections it has to spare");
    }
  }

  #resize(connections: number): void {
    const sizes = divideConnections(Math.min(this.#options.size, connections), idealSizes(availableParallelism()));
    for (const name of Object.keys(sizes) as PoolName[]) this.pools[name].resize(sizes[name]);
  }
}

function stateOf(pool: ConnectionPool): ConnectionPoolState {
  const { connections, maxConnections: max, inFlight, waiting, counters } = pool;
  const preparedStatements = connections.reduce((sum, connection) => sum + connection.preparedStatements, 0);
  return { connections: connections.length, max, inFlight, waiting, preparedStatements, counters };
}

type ConnectionOpenerOptions<Connection> = {
  readonly connect: () => Promise<Connection>;
  readonly onFailure: (error: Error) => void;
  /** True if a request waits for a connection: then the next attempt follows sooner. */
  readonly isAwaited: () => boolean;
};

/** Opens connections. While attempts fail, one caller retries and the others wait for its result. */
export class ConnectionOpener<Connection> {
  readonly #options: ConnectionOpenerOptions<Connection>;
  #failures = 0;
  #retry: Promise<void> | null = null;
  readonly #closed = new AbortController();

  constructor(options: ConnectionOpenerOptions<Connection>) {
    this.#options = options;
  }

  /** Never rejects: resolves with null when the connection is no longer wanted. */
  async open(isWanted: () => boolean): Promise<Connection | null> {
    for (;;) {
      while (this.#retry) await this.#retry;
      if (this.#closed.signal.aborted) return null;
      if (this.#failures > 0 && !isWanted()) return null;
      if (this.#failures === 0) {
        const connection = await this.#attempt();
        if (connection) return connection;
      } else {
        const retry = Promise.withResolvers<void>();
        this.#retry = retry.promise;
        await this.#pause();
        const connection = await this.#attempt();
        this.#retry = null;
        retry.resolve();
        if (connection) return connection;
      }
    }
  }

  close(): void {
    this.#closed.abort();
  }

  async #attempt(): Promise<Connection | null> {
    // Concurrent failures count as one.
    const failures = this.#failures + 1;
    try {
      const connection = await this.#options.connect();
      this.#failures = 0;
      return connection;
    } catch (error) {
      this.#failures = failures;
      this.#options.onFailure(error as Error);
      return null;
    }
  }

  /** Sleeps in steps, as a request may start to wait meanwhile. */
  async #pause(): Promise<void> {
    const { signal } = this.#closed;
    const end = performance.now() + retryDelay(this.#failures);
    for (let left = end - performance.now(); left > 0 && !signal.aborted; left = end - performance.now()) {
      await sleep(Math.min(left, awaitedRetryDelay(this.#failures)), undefined, { signal }).catch(() => {});
      if (this.#options.isAwaited()) return;
    }
  }
}
