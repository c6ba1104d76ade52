import { EventEmitter } from "node:events";
import pg from "pg";
import { findServer, type Listener } from "#postgres/client";
import { suspectsStandby } from "#postgres/database";

const CONNECT_TIMEOUT_MS = 10_000;
/** The time that a lane waits for a connection of another one before the pool opens one more: asking for a job takes less. */
const PATIENCE_MS = 50;

/** The connections of all lanes: while there is nothing to do, all lanes ask for jobs on the same connection, one after the other. */
export class JobPool extends pg.Pool {
  readonly #clients: Set<pg.Client>;
  readonly #lanes = new Set<LanePool>();
  readonly #patienceMs: number;
  /** The functions that let the lanes go on that wait for a connection of another one. */
  readonly #patient = new Set<() => void>();

  constructor(url: string, max: number, patienceMs = PATIENCE_MS) {
    const clients = new Set<pg.Client>();
    const Client = class extends findServer(url).makePoolClient(CONNECT_TIMEOUT_MS) {
      constructor(config?: string | pg.ClientConfig) {
        super(config);
        clients.add(this);
        this.once("end", () => clients.delete(this));
      }
    };
    super({
      Client,
      fallback_application_name: "jobs",
      max,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    this.#clients = clients;
    this.#patienceMs = patienceMs;
    this.on("release", () => {
      const [first] = this.#patient;
      first?.();
    });
    const ignore = () => {};
    this.on("error", ignore).on("connect", (client) => {
      client.on("error", ignore);
      // The connection is destroyed, so that the next one is checked to be one of a primary.
      const { connection } = client as pg.PoolClient & { readonly connection: pg.Connection };
      connection.on("errorMessage", (error) => {
        if (suspectsStandby(error)) setImmediate(() => connection.stream.destroy());
      });
    });
  }

  /** Gives the connection that is released next; opens one only if that takes long. */
  async connectPatiently(): Promise<pg.PoolClient> {
    if (this.idleCount <= this.waitingCount && this.totalCount > 0 && this.totalCount < this.options.max) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#patient.add(resolve);
      const timer = setTimeout(resolve, this.#patienceMs);
      await promise;
      clearTimeout(timer);
      this.#patient.delete(resolve);
    }
    return this.connect();
  }

  /** Opens the part for a lane that holds up to this number of connections. */
  openLane(listener: Listener, max: number): LanePool {
    const lane = new LanePool(this, listener, max, () => this.#lanes.delete(lane));
    this.#lanes.add(lane);
    return lane;
  }

  /** Closes at once, including connections that are in use or do not answer. No more are opened. */
  destroy(): void {
    if (!this.ending) this.end().catch(() => {});
    for (const lane of [...this.#lanes]) lane.close();
    for (const { connection } of this.#clients) connection.stream.destroy();
  }
}

type ConnectCallback = (error: undefined, client: NotifiedClient, release: () => void) => void;
type UsedClient = pg.PoolClient & { readonly connection: pg.Connection };

/** The part of a pool that graphile-worker uses, for one lane. A runner that has ended by an error may keep connections: `close` takes them back. */
export class LanePool extends EventEmitter {
  readonly options: { readonly max: number };
  readonly #pool: JobPool;
  readonly #listener: Listener;
  readonly #onClose: () => void;
  /** The clients in use, with the function that returns each to the pool. */
  readonly #used = new Map<UsedClient, (error?: Error | boolean) => void>();
  /** The reject functions of callers that wait for a connection. */
  readonly #waiting = new Set<(reason: unknown) => void>();
  #isClosed = false;

  constructor(pool: JobPool, listener: Listener, max: number, onClose: () => void) {
    super();
    this.options = { max };
    this.#pool = pool;
    this.#listener = listener;
    this.#onClose = onClose;
    // graphile-worker asks if errors of clients are handled: the pool does that.
    const ignore = () => {};
    this.on("error", ignore).on("connect", ignore);
  }

  connect(): Promise<pg.PoolClient>;
  connect(callback: ConnectCallback): void;
  connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    if (!callback) return this.#take();
    // Only the client that listens is requested with a callback.
    const client = new NotifiedClient(this.#listener, this.options.max);
    callback(undefined, client, () => client.close());
    return undefined;
  }

  async query(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult> {
    const client = await this.#take();
    try {
      return await client.query(query, values);
    } finally {
      client.release();
    }
  }

  /** Closes the connections that are still in use, and gives no others. */
  close(): void {
    this.#isClosed = true;
    this.#onClose();
    for (const reject of this.#waiting) reject(new Error("The lane is closed"));
    this.#waiting.clear();
    for (const [client, release] of this.#used) {
      client.connection.stream.destroy();
      release(true);
    }
    this.#used.clear();
  }

  #take(): Promise<pg.PoolClient> {
    const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>();
    if (this.#isClosed) return Promise.reject(new Error("The lane is closed"));
    this.#waiting.add(reject);
    this.#pool.connectPatiently().then((client) => {
      if (this.#waiting.delete(reject)) resolve(this.#use(client as UsedClient));
      else client.release();
    }, reject);
    return promise.finally(() => this.#waiting.delete(reject));
  }

  #use(client: UsedClient): pg.PoolClient {
    const release = client.release.bind(client);
    this.#used.set(client, release);
    client.release = (error) => {
      if (this.#used.delete(client)) release(error);
    };
    return client;
  }
}

/** The channels of graphile-worker: new jobs, and migrations of its schema. */
const CHANNELS = ["jobs:insert", "worker:migrate"] as const;

/** Listens for a runner of graphile-worker on the connection of the service instead of one of its own. */
class NotifiedClient extends EventEmitter {
  readonly #listening: Promise<unknown>;
  readonly #stops: (() => void)[] = [];
  #isClosed = false;

  constructor(listener: Listener, workers: number) {
    super();
    const notify = (channel: string, payload: string) => this.emit("notification", { channel, payload });
    // Notifications may have been lost, so all workers look for jobs.
    this.#stops.push(listener.onGap(() => notify("jobs:insert", JSON.stringify({ count: workers }))));
    this.#listening = Promise.all(
      CHANNELS.map(async (channel) =>
        this.#keep(await listener.listen(channel, (payload) => notify(channel, payload))),
      ),
    );
    this.#listening.catch(() => {});
  }

  /** graphile-worker sends LISTEN, and UNLISTEN before it releases the client. */
  async query(command: string): Promise<void> {
    if (command.startsWith("LISTEN")) await this.#listening;
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }

  #keep(stop: () => void): void {
    if (this.#isClosed) stop();
    else this.#stops.push(stop);
  }
}
