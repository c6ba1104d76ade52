import type { ApiError } from "#runtime";
import type { ConnectionEvents, PostgresConnection } from "./connection.ts";
import { shuttingDown } from "./database-errors.ts";
import { ConnectionQueue, ConnectionShares, type QueuedItem, type ShareLimits } from "./fair-sharing.ts";
import { type ConnectionCounters, makeConnectionCounters } from "./prepared-statements.ts";
import type { ShareHolder } from "./statement.ts";
import { LONG_MS } from "./statement-shape.ts";

const IDLE_TIMEOUT_MS = 60_000;
const DRAIN_TIMEOUT_MS = 2_000;
const MAX_WAITING = 10_000;

/** A request for a connection of the pool. */
export type ConnectionRequest = ShareHolder &
  QueuedItem & {
    /** The deadline for waiting, as `performance.now()`. */
    readonly expires: number;
    /** True if the request is batched with others on a connection: that costs less than a separate write. */
    readonly isBrief: boolean;
    /** True if the request is known to take little of a connection's time. */
    readonly isShort: boolean;
    /** The start of the wait in a pool, as `performance.now()`; set by the pool. */
    waitsSince?: number;
    start(connection: PostgresConnection): void;
    refuse(error: ApiError): void;
  };

type ConnectionPoolOptions = {
  /** The maximum number of batches in flight per connection. */
  readonly depth: number;
  /** The number of connections that stay open when idle. */
  readonly least: number;
  /** Resolves with null when the connection is no longer needed. */
  readonly open: (events: ConnectionEvents, isWanted: () => boolean) => Promise<PostgresConnection | null>;
  /** Checks if the session is on a standby although the pool is for a primary; if so, closes all sessions of that server. */
  readonly leaveStandby?: (connection: PostgresConnection) => Promise<boolean>;
  /** The error for requests that waited too long. */
  readonly refusal: () => ApiError;
  readonly counters?: ConnectionCounters;
  /** The limits of the shares, by the maximum number of connections. Without it, shares are not limited. */
  readonly limitsFor?: (max: number) => ShareLimits;
  /** The maximum duration of a read in milliseconds, after which it counts as long or is interrupted. */
  readonly slice?: number;
  /** The number of connections that are reserved for requests that are known to be short. */
  readonly keptForShort?: (max: number) => number;
  /** Called when a request starts, so that the owner schedules `interruptLongReads`. */
  readonly onStart?: () => void;
};

/** The minimum age of a connection before it is replaced because its database is read-only. */
const READ_ONLY_RETRY_MS = 1_000;

/** A pool of connections with a fair queue of waiting requests. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly counters: ConnectionCounters;
  readonly #connections: PostgresConnection[] = [];
  readonly #waiting = new ConnectionQueue<ConnectionRequest>();
  readonly #shares: ConnectionShares | null;
  #maxConnections = 0;
  #opening = 0;
  #draining: (() => void) | null = null;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.counters = options.counters ?? makeConnectionCounters();
    this.#shares = options.limitsFor ? new ConnectionShares(options.limitsFor(0)) : null;
  }

  get connections(): readonly PostgresConnection[] {
    return this.#connections;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get inFlight(): number {
    return this.#connections.reduce((sum, connection) => sum + connection.load, 0);
  }

  get maxConnections(): number {
    return this.#maxConnections;
  }

  /** Opens missing connections at once; closes surplus connections when they become idle. */
  resize(max: number): void {
    this.#maxConnections = max;
    if (this.#shares) this.#shares.limits = this.#options.limitsFor!(max);
    this.#startWaiting();
    this.#openMissing();
  }

  submit(request: ConnectionRequest): void {
    if (this.#draining) request.refuse(shuttingDown());
    else if (this.#waiting.length >= MAX_WAITING) this.#refuse(request);
    else {
      // Requests in the queue cannot start on any connection that has room, so they are not overtaken.
      const connection = this.#chooseConnection(request);
      if (connection && this.#mayStart(request)) this.#start(request, connection);
      else this.#wait(request);
      this.#openMissing();
    }
  }

  #wait(request: ConnectionRequest): void {
    request.waitsSince = performance.now();
    this.#waiting.push(request);
  }

  /** True if a request has waited this many milliseconds for a connection that the pool lacks. */
  isShort(waitMs: number): boolean {
    if (this.#connections.length >= this.#maxConnections) return false;
    const latest = performance.now() - waitMs;
    const isLate = (request: ConnectionRequest) => request.waitsSince! <= latest && this.#mayStart(request);
    return this.#waiting.find(isLate) !== null;
  }

  /** True if a request would start without waiting for others. */
  accepts(holder: ShareHolder): boolean {
    return this.inFlight + this.waiting < this.#maxConnections && (this.#shares?.admits(holder) ?? true);
  }

  /** Removes a request from the queue. */
  withdraw(request: ConnectionRequest): void {
    this.#waiting.remove(request);
  }

  /** Returns a leased connection. */
  release(connection: PostgresConnection): void {
    connection.leased = false;
    this.#onReady(connection);
  }

  /** Refuses all waiting requests. */
  refuseWaiting(): void {
    for (const request of this.#waiting.takeWhile(() => true)) this.#refuse(request);
  }

  /** True if a refused statement has to be sent again, because its server is no longer a primary. */
  async leavesStandby(refused: PostgresConnection): Promise<boolean> {
    if (await this.#options.leaveStandby?.(refused)) return true;
    this.#replaceReadOnly(refused);
    return false;
  }

  /** The session stays read-only if the database was read-only at its start, so a new session replaces it. */
  #replaceReadOnly(refused: PostgresConnection): void {
    const isOld = performance.now() - refused.openedAt > READ_ONLY_RETRY_MS;
    if (isOld) this.retire((connection) => connection === refused);
  }

  /** Closes the affected connections as soon as they are idle. */
  retire(isAffected: (connection: PostgresConnection) => boolean): void {
    for (const connection of this.#connections.filter(isAffected)) {
      connection.retiring = true;
      this.#onReady(connection);
    }
  }

  forgetStatements(): void {
    for (const connection of this.#connections) connection.forgetStatements();
  }

  /** Called periodically: refuses expired requests, detects unresponsive connections, closes surplus and old ones. */
  sweep(now: number): void {
    this.#shares?.forget(now);
    for (const request of this.#waiting.takeWhile(({ expires }) => expires <= now)) this.#refuse(request);
    for (const connection of this.#connections.slice()) {
      connection.checkSilence(now);
      if (now > connection.retiresAt) connection.retiring = true;
      const spare = this.#connections.length > this.#options.least && now - connection.idleSince > IDLE_TIMEOUT_MS;
      if (spare || this.#connections.length > this.#maxConnections) connection.retiring ||= connection.isIdle;
      if (connection.retiring) this.#onReady(connection);
    }
    this.#finishDraining();
  }

  /**
   * Called every few milliseconds while statements run. Marks shares of long statements as long. Reads that have run for
   * a slice go on if their caller has a share left. The longest-running others are interrupted, and continue in the slow
   * pool, if other requests wait or the caller is anonymous or gone. At most a quarter of the connections at a time,
   * since every read is slow when the server is.
   */
  interruptLongReads(now: number): void {
    for (const connection of this.#connections) {
      if (connection.shareHolder && connection.busyFor(now) >= LONG_MS)
        this.#shares!.noteLong(connection.shareHolder, now);
    }
    const { slice } = this.#options;
    if (slice !== undefined) this.#interruptReads(now, slice);
  }

  #interruptReads(now: number, slice: number): void {
    const overdue = this.#connections
      .filter((connection) => connection.busyFor(now) > slice && connection.interruptible && !connection.shareHolder)
      .toSorted((one, other) => other.busyFor(now) - one.busyFor(now))
      .filter((connection) => !this.#takeShareOfLong(connection, now));
    const isCrowded = this.#waiting.find(this.#isAdmitted) !== null;
    // While draining, the slow pool accepts no more requests.
    const mayMove = !this.#draining;
    const isUnlimited = (connection: PostgresConnection) =>
      connection.interruptible!.isAnonymous && connection.busyFor(now) >= LONG_MS;
    const isInTheWay = (connection: PostgresConnection) =>
      connection.isAbandoned || (mayMove && (isCrowded || connection.load > 1 || isUnlimited(connection)));
    for (const connection of overdue.filter(isInTheWay).slice(0, Math.ceil(this.#connections.length / 4)))
      connection.interrupt();
  }

  /** Counts a running read as long from now on. Returns false if no share is left. */
  #takeShareOfLong(connection: PostgresConnection, now: number): boolean {
    const { caller, isAnonymous, relations } = connection.interruptible!;
    const holder = { caller, isAnonymous, relations, isLong: true };
    if (!this.#shares?.admits(holder)) return false;
    this.#shares.take(holder);
    connection.shareHolder = holder;
    connection.shareTakenAt = now;
    return true;
  }

  /** Refuses new requests, waits a while for the running ones and closes the connections. */
  async drain(): Promise<void> {
    const timer = setTimeout(() => this.#destroyAll(), DRAIN_TIMEOUT_MS);
    await new Promise<void>((resolve) => {
      this.#draining = resolve;
      this.#finishDraining();
    });
    clearTimeout(timer);
    await Promise.all(this.#connections.splice(0).map((connection) => connection.close()));
  }

  readonly #events: ConnectionEvents = {
    ready: (connection) => this.#onReady(connection),
    lost: (connection) => {
      if (!this.#remove(connection)) return;
      this.#startWaiting();
      this.#openMissing();
      // The lost statements may run again first.
      setImmediate(() => this.#finishDraining());
    },
  };

  #destroyAll(): void {
    this.refuseWaiting();
    for (const connection of [...this.#connections]) connection.destroy(new Error("The pool is closed"));
  }

  #onReady(connection: PostgresConnection): void {
    if (connection.isIdle) this.#returnShare(connection);
    if (connection.retiring && connection.isIdle && this.#remove(connection)) {
      void connection.close();
      this.#openMissing();
    }
    this.#startWaiting();
    this.#finishDraining();
  }

  #startWaiting(): void {
    while (this.#waiting.length > 0 && this.#hasRoom) {
      const request = this.#waiting.find(this.#mayStart);
      if (!request) return;
      this.#waiting.serve(request);
      this.#start(request, this.#chooseConnection(request)!);
    }
  }

  readonly #mayStart = (request: ConnectionRequest): boolean =>
    (request.isShort || this.#hasRoomForAny) && this.#isAdmitted(request);

  readonly #isAdmitted = (request: ConnectionRequest): boolean => this.#shares?.admits(request) ?? true;

  get #hasRoomForAny(): boolean {
    const { keptForShort } = this.#options;
    return !keptForShort || this.inFlight < this.#maxConnections - keptForShort(this.#maxConnections);
  }

  #start(request: ConnectionRequest, connection: PostgresConnection): void {
    // The connection may still hold the share of a request that continues in another pool.
    this.#returnShare(connection);
    if (this.#shares?.take(request)) {
      connection.shareHolder = request;
      connection.shareTakenAt = performance.now();
    }
    this.#options.onStart?.();
    request.start(connection);
  }

  #returnShare(connection: PostgresConnection): void {
    const { shareHolder: claimant } = connection;
    if (!claimant) return;
    connection.shareHolder = null;
    this.#shares!.giveBack(claimant);
    if (this.#shares!.isCongested) this.#noteShortRun(claimant, connection.shareTakenAt);
  }

  #noteShortRun(claimant: ShareHolder, startedAt: number): void {
    const now = performance.now();
    if (now - startedAt >= LONG_MS) return;
    const stillLong = this.#connections.flatMap(
      (connection) => (connection.busyFor(now) >= LONG_MS && connection.shareHolder) || [],
    );
    this.#shares!.noteShort(claimant, stillLong);
  }

  get #hasRoom(): boolean {
    return this.#connections.some((connection) => connection.hasRoom);
  }

  /**
   * A brief request joins a batch that is about to be written: one write for several. Other requests go to the
   * connection with the least load.
   */
  #chooseConnection({ isBrief }: ConnectionRequest): PostgresConnection | undefined {
    let best: PostgresConnection | undefined;
    for (const connection of this.#connections) {
      if (!connection.hasRoom) continue;
      if (isBrief && connection.hasUnsentBatches) return connection;
      if (!best || connection.load < best.load) best = connection;
    }
    return best;
  }

  #openMissing(): void {
    while (this.#connections.length + this.#opening < this.#maxConnections && this.#needsConnection())
      void this.#open();
  }

  #needsConnection(): boolean {
    if (this.#connections.length + this.#opening < this.#options.least) return this.#draining === null;
    if (this.#waiting.length > this.#opening) return true;
    // Opens one more connection at a time for connections with several batches in flight.
    return (
      this.#opening === 0 && this.#options.depth > 1 && this.#connections.every((connection) => connection.load > 1)
    );
  }

  async #open(): Promise<void> {
    this.#opening++;
    const isWanted = () =>
      this.#waiting.length > 0 || (this.#connections.length < this.#options.least && !this.#draining);
    const connection = await this.#options.open(this.#events, isWanted);
    this.#opening--;
    if (!connection) return;
    // The connection was lost before it was added to the pool.
    if (connection.isClosed) return this.#openMissing();
    if (this.#draining && !isWanted()) return connection.close();
    this.#connections.push(connection);
    this.#onReady(connection);
  }

  #remove(connection: PostgresConnection): boolean {
    const index = this.#connections.indexOf(connection);
    if (index < 0) return false;
    this.#connections.splice(index, 1);
    this.#returnShare(connection);
    return true;
  }

  #refuse(request: ConnectionRequest): void {
    this.counters.turnedAway++;
    request.refuse(this.#options.refusal());
  }

  #finishDraining(): void {
    if (this.#waiting.length === 0 && this.#connections.every((connection) => connection.isIdle)) this.#draining?.();
  }
}
