import { randomUUID } from "node:crypto";
import pg from "pg";
import { Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { endClient } from "./end-client.ts";
import { findServer, type ServerOptions } from "./server-finder.ts";

/** One LISTEN connection per process. Notifications may be lost: they are hints, never the only source of information. */
export type Listener = {
  /** Resolves when Postgres listens to the channel. Several handlers may share a channel. The returned function removes the handler. */
  listen(channel: string, handler: (payload: string) => void): Promise<() => void>;
  /** Calls back after an interruption: notifications may have been lost. */
  onGap(callback: () => void): () => void;
  isListening(): boolean;
  close(): Promise<void>;
};

export type ListenerOptions = {
  readonly url: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly supervisor?: Supervisor;
  readonly applicationName?: string;
  /** The interval of notifications to itself, which test the connection. */
  readonly heartbeatMs?: number;
  /** The timeout of these notifications and of all other queries. */
  readonly answerWithinMs?: number;
};

export function openListener(options: ListenerOptions): Listener {
  return new ListeningClient(options);
}

/** LISTEN truncates longer names, but pg_notify rejects them. */
const LONGEST_CHANNEL = 63;

type NotificationHandler = (payload: string) => void;

class ListeningClient implements Listener {
  readonly #options: Required<ListenerOptions>;
  readonly #handlers = new Map<string, Set<NotificationHandler>>();
  readonly #gapCallbacks = new Set<() => void>();
  readonly #heartbeatChannel = `heartbeat_${randomUUID()}`;
  #client: pg.Client | null = null;
  /** The current or next connection; replaced for each attempt. */
  #connected = makeHandledPromise<pg.Client>();
  #heardHeartbeat: () => void = () => {};
  readonly #report: WorkReport;
  #timer: NodeJS.Timeout | undefined;
  #hasListened = false;
  #closed = false;

  constructor(options: ListenerOptions) {
    const { supervisor = new Supervisor(options) } = options;
    this.#report = supervisor.report("notifications");
    this.#options = {
      supervisor,
      applicationName: "listener",
      heartbeatMs: 30_000,
      answerWithinMs: 10_000,
      ...options,
    };
    this.#connect();
  }

  async listen(channel: string, handler: NotificationHandler): Promise<() => void> {
    if (Buffer.byteLength(channel) > LONGEST_CHANNEL)
      throw new RangeError(`The channel ${channel} has too long a name`);
    // A wrapper per call, so that a handler added twice is called twice and removed one at a time.
    const own: NotificationHandler = (payload) => handler(payload);
    const handlers = this.#handlers.get(channel) ?? new Set();
    this.#handlers.set(channel, handlers.add(own));
    try {
      await this.#queryUntilAnswered(listenCommand(channel));
    } catch (error) {
      this.#removeHandler(channel, own);
      throw error;
    }
    return () => this.#removeHandler(channel, own);
  }

  onGap(callback: () => void): () => void {
    this.#gapCallbacks.add(callback);
    return () => this.#gapCallbacks.delete(callback);
  }

  isListening(): boolean {
    return this.#client !== null;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#closed = true;
    this.#client = null;
    this.#connected.reject(closedError());
    clearTimeout(this.#timer);
    this.#report.close();
    if (client) await endClient(client);
  }

  async #queryUntilAnswered(command: string): Promise<void> {
    for (;;) {
      if (this.#closed) throw closedError();
      const client = await this.#connected.promise;
      try {
        await client.query(command);
        return;
      } catch (error) {
        if (isStatementRefused(error)) throw error;
        this.#onLost(client, error as Error);
      }
    }
  }

  #removeHandler(channel: string, handler: NotificationHandler): void {
    const handlers = this.#handlers.get(channel);
    if (!handlers?.delete(handler) || handlers.size > 0) return;
    this.#handlers.delete(channel);
    this.#client?.query(`unlisten ${pg.escapeIdentifier(channel)}`).catch(() => {});
  }

  #connect(): void {
    const restart = (error: unknown) => this.#client && this.#onLost(this.#client, error as Error);
    void this.#report.run(() => this.#open(), restart);
  }

  async #open(): Promise<void> {
    const { url, answerWithinMs } = this.#options;
    let client: pg.Client | null = null;
    try {
      ({ client } = await findServer(url).connect((server) => this.#makeClient(server), answerWithinMs));
      const channels = [this.#heartbeatChannel, ...this.#handlers.keys()];
      // Querying the queue usage advances its tail, which otherwise can make LISTEN fail (PostgREST issue 3147).
      const commands = ["select pg_catalog.pg_notification_queue_usage()", ...channels.map(listenCommand)];
      await client.query(commands.join(";"));
    } catch (error) {
      client?.connection.stream.destroy();
      this.#retry(error as Error);
      return;
    }
    if (this.#closed) {
      await endClient(client);
      return;
    }
    this.#begin(client);
  }

  #makeClient(server: ServerOptions): pg.Client {
    const { applicationName, answerWithinMs } = this.#options;
    const client = new pg.Client({
      ...server,
      fallback_application_name: applicationName,
      query_timeout: answerWithinMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: true,
    });
    // Without a listener, a killed backend would end the process.
    client.on("error", (error) => this.#onLost(client, error));
    client.on("end", () => this.#onLost(client, new Error("The server closed the connection")));
    client.on("notification", ({ channel, payload }) => this.#onNotification(channel, payload ?? ""));
    return client;
  }

  #begin(client: pg.Client): void {
    this.#report.runs();
    this.#client = client;
    this.#connected.resolve(client);
    this.#scheduleHeartbeat(client);
    if (this.#hasListened) for (const callback of this.#gapCallbacks) this.#call(callback);
    this.#hasListened = true;
  }

  #onLost(client: pg.Client, reason: Error): void {
    if (client !== this.#client) return;
    this.#client = null;
    this.#connected = makeHandledPromise();
    client.connection.stream.destroy();
    this.#retry(reason);
  }

  #retry(reason: Error): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), this.#report.fails(reason));
    this.#timer.unref();
  }

  #onNotification(channel: string, payload: string): void {
    if (channel === this.#heartbeatChannel) this.#heardHeartbeat();
    for (const handler of this.#handlers.get(channel) ?? []) this.#call(() => handler(payload));
  }

  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.log.error({ err: error }, "a handler of notifications failed");
    }
  }

  #scheduleHeartbeat(client: pg.Client): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#sendHeartbeat(client), this.#options.heartbeatMs);
    this.#timer.unref();
  }

  /** A session can be open without receiving notifications: behind a pooler, or when the server's queue is stuck (PostgREST issue 3147). */
  #sendHeartbeat(client: pg.Client): void {
    const deaf = setTimeout(() => {
      this.#onLost(client, new Error("No notification comes back: does the connection go through a pooler?"));
    }, this.#options.answerWithinMs).unref();
    this.#heardHeartbeat = () => {
      clearTimeout(deaf);
      if (client === this.#client) this.#scheduleHeartbeat(client);
    };
    client.query(`notify ${pg.escapeIdentifier(this.#heartbeatChannel)}`).catch((error) => this.#onLost(client, error));
  }
}

/** Returns a promise whose rejection need not be handled. */
function makeHandledPromise<Value>(): PromiseWithResolvers<Value> {
  const resolvers = Promise.withResolvers<Value>();
  resolvers.promise.catch(() => {});
  return resolvers;
}

/** True if LISTEN is refused for good, for example by a pooler. After a temporary error (a timeout, a standby, no memory) LISTEN is retried. */
function isStatementRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(0A|42)/.test(error.code ?? "");
}

function listenCommand(channel: string): string {
  return `listen ${pg.escapeIdentifier(channel)}`;
}

function closedError(): Error {
  return new Error("The listener is closed");
}
