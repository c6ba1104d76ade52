import type { ApiError } from "../errors.ts";
import type { ConnectionEvents, PostgresConnection } from "./connection.ts";
import { shuttingDown } from "./database-errors.ts";
import { ConnectionShares, FairQueue, type QueuedItem, type ShareHolder, type ShareLimits } from "./fair-sharing.ts";
import { type ConnectionCounters, makeConnectionCounters } from "./prepared-statements.ts";
import { LONG_MS } from "./statement-shape.ts";

const IDLE_TIMEOUT_MS = 60_000;
const MAX_WAITING = 10_000;

/** Something that wants a link. */
export type ConnectionRequest = ShareHolder &
  QueuedItem & {
    /** When it gives up waiting, by `performance.now()`. */
    readonly expires: number;
    /** Others may wait for it, since that costs less than to be sent by themselves. */
    readonly isBrief: boolean;
    start(connection: PostgresConnection): void;
    refuse(error: ApiError): void;
  };

export type ConnectionPoolOptions = {
  /** How many exchanges a link may have in flight. */
  readonly depth: number;
  /** How many links stay open when there is nothing to do. */
  readonly least: number;
  /** Resolves with null when nobody wants the link any more. */
  readonly open: (events: ConnectionEvents, isWanted: () => boolean) => Promise<PostgresConnection | null>;
  /** What to tell those who have waited too long. */
  readonly refusal: () => ApiError;
  readonly tally?: ConnectionCounters;
  /** The shares that tickets take, by how many links there may be; without it there are no shares. */
  readonly limitsFor?: (max: number) => ShareLimits;
  /** For how many milliseconds a link may run what can run again while others wait for it. */
  readonly slice?: number;
  /** Called when something starts, so that `look` is too. */
  readonly onStart?: () => void;
};

/** Links of one kind and those who wait for one. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly counters: ConnectionCounters;
  readonly #connections: PostgresConnection[] = [];
  readonly #waiting = new FairQueue<ConnectionRequest>();
  readonly #shares: ConnectionShares | null;
  #maxConnections = 0;
  #opening = 0;
  #draining: (() => void) | null = null;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.counters = options.tally ?? makeConnectionCounters();
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

  /** Opens what is wanted at once; what is too many closes as it falls idle. */
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
      // Whoever waits already can start on none of the links that have room.
      const connection = this.#chooseConnection(request);
      if (connection && this.#mayStart(request)) this.#start(request, connection);
      else this.#waiting.push(request);
      this.#openMissing();
    }
  }

  /** It no longer wants to be started. */
  withdraw(request: ConnectionRequest): void {
    this.#waiting.remove(request);
  }

  /** Gives back a link that was leased. */
  release(connection: PostgresConnection): void {
    connection.leased = false;
    this.#onReady(connection);
  }

  /** Whoever waits is not served here. */
  refuseWaiting(): void {
    for (const request of this.#waiting.takeWhile(() => true)) this.#refuse(request);
  }

  forgetStatements(): void {
    for (const connection of this.#connections) connection.forgetStatements();
  }

  /** To be called now and then. */
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
   * To be called every few milliseconds while something runs. Notes what takes long. Where others wait, or nobody waits for it, the read that has
   * been running for longest is interrupted and goes where it is in nobody's way. Few at a time, since all are slow where
   * the server is.
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
    const isCrowded = !this.#hasRoom && this.#waiting.find(this.#mayStart) !== null;
    // While it drains, others take nothing any more that goes on there.
    const mayMove = !this.#draining;
    const isInTheWay = (connection: PostgresConnection) =>
      connection.isAbandoned || (mayMove && (isCrowded || connection.load > 1));
    this.#connections
      .filter(
        (connection) =>
          connection.busyFor(now) > slice &&
          connection.isInterruptible &&
          isInTheWay(connection) &&
          !connection.shareHolder,
      )
      .toSorted((one, other) => other.busyFor(now) - one.busyFor(now))
      .slice(0, Math.ceil(this.#connections.length / 4))
      .forEach((connection) => {
        connection.interrupt();
      });
  }

  /** Takes no more tickets, waits for the last answer and closes. */
  async drain(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#draining = resolve;
      this.#finishDraining();
    });
    await Promise.all(this.#connections.splice(0).map((connection) => connection.close()));
  }

  readonly #events: ConnectionEvents = {
    ready: (connection) => this.#onReady(connection),
    lost: (connection) => {
      if (!this.#remove(connection)) return;
      this.#startWaiting();
      this.#openMissing();
    },
  };

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

  readonly #mayStart = (request: ConnectionRequest): boolean => this.#shares?.admits(request) ?? true;

  #start(request: ConnectionRequest, connection: PostgresConnection): void {
    // It may still have that of a ticket which goes on elsewhere.
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
   * What is brief goes along with what is about to be sent: one write, and one awakening of the server, for several. All
   * else goes where there is the least to do.
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
    // Links that share their time among several exchanges get company, one at a time.
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
    // Lost on its way here, when there was nothing to remove yet.
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
