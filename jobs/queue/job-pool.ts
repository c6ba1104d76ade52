import pg from "pg";
import { findServer } from "#postgres/client";
import { suspectsStandby } from "#postgres/database";

const CONNECT_TIMEOUT_MS = 10_000;

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: pg.PoolClient["release"],
) => void;

/**
 * The connections of one job runner. graphile-worker 0.18 releases the listening connection a second time if it dies while
 * the runner stops: the pool's error about that would end the process, so a second release does nothing here.
 */
export class JobPool extends pg.Pool {
  readonly #clients: Set<pg.Client>;
  /** The reject functions of callers that wait for a connection: a pool that ends forgets them. */
  readonly #waiting = new Set<(reason: unknown) => void>();

  /** The pool has one connection for each concurrent job, and one for LISTEN. It replaces lost connections when they are needed. */
  constructor(url: string, concurrency: number) {
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
      max: concurrency + 1,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    this.#clients = clients;
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

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    if (callback) {
      super.connect((error, client, release) => {
        const releaseFirst = releaseOnce(release);
        if (client) client.release = releaseFirst;
        callback(error, client, releaseFirst);
      });
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>();
    this.#waiting.add(reject);
    this.connect((error, client, release) => {
      if (!this.#waiting.delete(reject)) release();
      else if (client) resolve(client);
      else reject(error);
    });
    return promise;
  }

  /** Closes at once, including connections that are in use or do not answer. No more are opened. */
  destroy(): void {
    if (!this.ending) this.end().catch(() => {});
    for (const { connection } of this.#clients) connection.stream.destroy();
    for (const reject of this.#waiting) reject(new Error("The pool was closed"));
    this.#waiting.clear();
  }
}

/** A pool that has ended passes an error and nothing to release. */
function releaseOnce(release: pg.PoolClient["release"] | undefined): pg.PoolClient["release"] {
  let isReleased = false;
  return (error) => {
    if (isReleased) return;
    isReleased = true;
    release?.(error);
  };
}
