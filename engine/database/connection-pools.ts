import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitedRetryDelay, retryDelay } from "../concurrency/retry-delay.ts";
import type { ApiError } from "../errors.ts";
import { type ConnectionEvents, PostgresConnection, type RunningStatement } from "./connection.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { acquireTimeout, databaseUnreachable } from "./database-errors.ts";
import { type ShareLimits, sharesForReads, sharesForWrites } from "./fair-sharing.ts";
import { countFreeConnections, divideConnections, idealSizes, type PoolName } from "./pool-sizes.ts";
import { openPostgresSocket, type PostgresSocket } from "./postgres-socket.ts";
import { type ConnectionCounters, makeConnectionCounters } from "./prepared-statements.ts";

const SWEEP_INTERVAL_MS = 250;
const SIZE_QUERY_INTERVAL_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How many connections will do until the server has said how many it can spare. */
const INITIAL_CONNECTIONS = 8;
const MAX_PREPARED_STATEMENTS = 250;

/** How often it is looked whether something keeps others waiting. */
const TICK_INTERVAL_MS = 25;

type PoolTerms = {
  /** For how many milliseconds a read may keep others waiting on a link, or for one. */
  readonly slice?: number;
  readonly limitsFor?: (connections: number) => ShareLimits;
};

/** Reads that are known to be fast may have several in flight on one link; for all others a link is theirs alone. */
const TERMS_BY_POOL: Readonly<Record<PoolName, PoolTerms>> = {
  read: { slice: 50 },
  write: { limitsFor: sharesForWrites },
  slow: { slice: 200, limitsFor: sharesForReads },
  stream: {},
};

export type ConnectionPoolsOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly log: DatabaseLog;
  readonly onState: (condition: DatabaseAvailability) => void;
  readonly size: number;
  readonly preparedStatements: boolean;
  /** Most reads that are in flight on one link. */
  readonly pipelineDepth: number;
};

export type ConnectionPoolState = {
  readonly links: number;
  readonly most: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly preparedStatements: number;
  readonly tally: Readonly<ConnectionCounters>;
};

export type ConnectionPoolsState = DatabaseAvailability & {
  readonly lanes: Readonly<Record<PoolName, ConnectionPoolState>>;
};

/** The requests' connections: as many as the server can spare, kept alive, and brought back when they are lost. */
export class ConnectionPools {
  readonly pools: Readonly<Record<PoolName, ConnectionPool>>;
  readonly #options: ConnectionPoolsOptions;
  readonly #availability: AvailabilityMonitor;
  readonly #connector: ConnectionOpener<PostgresSocket>;
  readonly #sweeper: NodeJS.Timeout;
  #ticker: NodeJS.Timeout | null = null;
  #sizesAskedAt = Number.NEGATIVE_INFINITY;
  #areSizesKnown = false;

  constructor(options: ConnectionPoolsOptions) {
    const { url, applicationName, log, onState } = options;
    this.#options = options;
    this.#availability = new AvailabilityMonitor(log, onState);
    this.#connector = new ConnectionOpener({
      connect: () => openPostgresSocket({ url, applicationName, connectTimeout: CONNECT_TIMEOUT_MS }),
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
    const lanes = { read: stateOf(read), write: stateOf(write), slow: stateOf(slow), stream: stateOf(stream) };
    return { ...this.#availability.current, lanes };
  }

  async close(): Promise<void> {
    await Promise.all(this.#allPools.map((pool) => pool.drain()));
    clearInterval(this.#sweeper);
    clearTimeout(this.#ticker ?? undefined);
    this.#connector.close();
  }

  /** Whoever waits for a connection is not served here. */
  refuseWaiting(): void {
    for (const pool of this.#allPools) pool.refuseWaiting();
  }

  runningStatements(): RunningStatement[] {
    const now = performance.now();
    return this.#allPools.flatMap(({ connections: links }) =>
      links.flatMap((connection) => connection.runningStatements(now)),
    );
  }

  forgetStatements(): void {
    for (const pool of this.#allPools) pool.forgetStatements();
  }

  get #allPools(): readonly ConnectionPool[] {
    return Object.values(this.pools);
  }

  get #connectionCount(): number {
    return this.#allPools.reduce((sum, pool) => sum + pool.connections.length, 0);
  }

  #makePool(name: PoolName): ConnectionPool {
    const depth = name === "read" ? this.#options.pipelineDepth : 1;
    const counters = makeConnectionCounters();
    return new ConnectionPool({
      ...TERMS_BY_POOL[name],
      depth,
      tally: counters,
      // One link is always there, so that we know whether the database is.
      least: name === "read" ? 1 : 0,
      open: (events, isWanted) => this.#openConnection({ depth, tally: counters }, events, isWanted),
      refusal: () => this.#refusal(),
      onStart: this.#keepTicking,
    });
  }

  readonly #keepTicking = (): void => {
    // What has been answered meanwhile is read first: what we have not read is no fault of the server's.
    this.#ticker ??= setTimeout(() => setImmediate(this.#tick), TICK_INTERVAL_MS);
  };

  readonly #tick = (): void => {
    this.#ticker = null;
    const now = performance.now();
    for (const pool of this.#allPools) pool.interruptLongReads(now);
    if (this.#allPools.some(({ inFlight }) => inFlight > 0)) this.#keepTicking();
  };

  #refusal(): ApiError {
    const { status, reason } = this.#availability.current;
    return status === "up" ? acquireTimeout() : databaseUnreachable(reason);
  }

  async #openConnection(
    { depth, tally: counters }: { readonly depth: number; readonly tally: ConnectionCounters },
    events: ConnectionEvents,
    isWanted: () => boolean,
  ): Promise<PostgresConnection | null> {
    const socket = await this.#connector.open(isWanted);
    if (!socket) return null;
    this.#availability.up();
    void this.#adaptSizes();
    const mostPrepared = this.#options.preparedStatements ? MAX_PREPARED_STATEMENTS : 0;
    return new PostgresConnection(socket, events, { depth, tally: counters, mostPrepared });
  }

  #onConnectFailure(error: Error): void {
    if (this.#connectionCount > 0) this.#availability.exhausted(error);
    else {
      this.#areSizesKnown = false;
      this.#sizesAskedAt = Number.NEGATIVE_INFINITY;
      this.#availability.down(error);
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const pool of this.#allPools) pool.sweep(now);
    if (this.#availability.current.status === "up") void this.#adaptSizes();
  }

  /** Fits the lanes into what the server can spare, once each time that it comes up. */
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
  const { connections: links, maxConnections: most, inFlight, waiting, counters } = pool;
  const preparedStatements = links.reduce((sum, connection) => sum + connection.preparedStatements, 0);
  return { links: links.length, most, inFlight, waiting, preparedStatements, tally: counters };
}

type ConnectionOpenerOptions<Connection> = {
  readonly connect: () => Promise<Connection>;
  readonly onFailure: (error: Error) => void;
  /** Whether a request waits for a connection: then the next attempt comes sooner. */
  readonly isAwaited: () => boolean;
};

/** Opens connections. While that fails one caller tries again and again, and the others wait for how it ends. */
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
    // Those who fail at the same time count as one.
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

  /** In steps, as a request may come while nobody has waited yet. */
  async #pause(): Promise<void> {
    const { signal } = this.#closed;
    const end = performance.now() + retryDelay(this.#failures);
    for (let left = end - performance.now(); left > 0 && !signal.aborted; left = end - performance.now()) {
      await sleep(Math.min(left, awaitedRetryDelay(this.#failures)), undefined, { signal }).catch(() => {});
      if (this.#options.isAwaited()) return;
    }
  }
}

export type DatabaseLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

export type DatabaseAvailability = {
  readonly status: "connecting" | "up" | "down";
  readonly since: Date;
  /** Why the latest attempt to reach it failed. */
  readonly reason: string | null;
};

/** Whether the database can be reached. Each change is told once, however many requests meet it. */
export class AvailabilityMonitor {
  #current: DatabaseAvailability = { status: "connecting", since: new Date(), reason: null };
  #isExhausted = false;
  readonly #log: DatabaseLog;
  readonly #onChange: (availability: DatabaseAvailability) => void;

  constructor(log: DatabaseLog, onChange: (availability: DatabaseAvailability) => void) {
    this.#log = log;
    this.#onChange = onChange;
  }

  get current(): DatabaseAvailability {
    return this.#current;
  }

  /** A connection was opened. */
  up(): void {
    this.#isExhausted = false;
    const { status, since } = this.#current;
    if (status === "up") return;
    if (status === "down") this.#log.info({ awayMs: Date.now() - since.getTime() }, "the database is back");
    this.#change({ status: "up", since: new Date(), reason: null });
  }

  /** A further connection was refused while others work. */
  exhausted(error: Error): void {
    if (this.#isExhausted) return;
    this.#isExhausted = true;
    this.#log.warn({ err: error }, "cannot open another database connection; going on with those that are open");
  }

  /** There is no connection and none was to be had. */
  down(error: Error): void {
    const reason = error.message;
    if (this.#current.status === "down") this.#current = { ...this.#current, reason };
    else {
      this.#log.warn({ err: error }, "the database is away; trying to reach it until it answers");
      this.#change({ status: "down", since: new Date(), reason });
    }
  }

  #change(availability: DatabaseAvailability): void {
    this.#current = availability;
    this.#onChange(availability);
  }
}
