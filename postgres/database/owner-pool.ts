import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { ApiError } from "#runtime";
import { awaitedRetryDelay, type WorkReport } from "#runtime/concurrency";
import { parseJsonExactly } from "#runtime/json";
import type { Logger } from "#runtime/log";
import { findServer, isClientOnStandby, NoServerError, type ServerFinder } from "../client/server-finder.ts";
import { isFatal } from "../client/server-messages.ts";
import { acquireTimeout, databaseUnreachable, noPrimary, outcomeUnknown } from "./database-errors.ts";
import { suspectsStandby } from "./standby-check.ts";

/** SQLSTATE undefined_function and invalid_schema_name: the database lacks this service's schemas. */
const UNDEFINED_FUNCTION_CODES: readonly (string | undefined)[] = ["42883", "3F000"];
const INSUFFICIENT_PRIVILEGE = "42501";

const MAX_CLIENTS = 4;
const CLOSE_TIMEOUT_MS = 1_000;
/** pg-pool's message if all clients were busy for too long. */
const POOL_EXHAUSTED_MESSAGE = "timeout exceeded when trying to connect";

/** Keeps all digits of numbers in claims and metadata: a rounded number may be that of another tenant. */
const EXACT_TYPES: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    type === pg.types.builtins.JSONB && format !== "binary" ? parseJsonExactly : pg.types.getTypeParser(type, format),
};

type PooledClient = pg.PoolClient & { readonly connection: pg.Connection; readonly serverName: string };

type OwnerPoolOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly acquireTimeout: number;
  /** The work that is reported with uncaught errors of the connections. */
  readonly report?: WorkReport;
};

/** A pool of connections as the database owner. */
export class OwnerPool {
  readonly #pool: pg.Pool;
  readonly #finder: ServerFinder;
  readonly #open = new Set<PooledClient>();
  readonly #busy = new Set<PooledClient>();
  readonly #lost = new WeakSet<PooledClient>();
  /** The clients of which a standby may have refused a statement. */
  readonly #suspected = new WeakSet<PooledClient>();
  /** The clients whose server is a standby now, or whose session may be read-only. */
  readonly #outdated = new WeakSet<PooledClient>();
  readonly #acquireTimeout: number;
  readonly #report: WorkReport | undefined;
  #retry: Promise<void> | null = null;
  /** The error of the last attempt to connect; null after a success. */
  #failure: Error | null = null;
  #failures = 0;

  constructor({ url, applicationName, acquireTimeout, report }: OwnerPoolOptions) {
    this.#acquireTimeout = acquireTimeout;
    this.#report = report;
    this.#finder = findServer(url);
    this.#pool = new pg.Pool({
      Client: this.#finder.makePoolClient(acquireTimeout),
      fallback_application_name: applicationName,
      max: MAX_CLIENTS,
      connectionTimeoutMillis: acquireTimeout,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      types: EXACT_TYPES,
    });
    // The pool replaces a lost idle client when needed.
    this.#pool.on("error", () => {});
    // The listener is added at once: the connection may be lost right after it is established.
    this.#pool.on("connect", (client) => this.#watch(client as PooledClient));
    this.#pool.on("remove", (client) => this.#open.delete(client as PooledClient));
  }

  /** Runs the work again if a standby has refused it, since that has changed nothing. */
  async lend<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#acquireTimeout;
    for (;;) {
      const client = await this.#connect(deadline);
      this.#busy.add(client);
      try {
        return await work(client);
      } catch (error) {
        if (await this.#leavesStandby(client)) continue;
        if (error instanceof pg.DatabaseError && isFatal(error)) this.#lost.add(client);
        throw this.#lost.has(client) ? outcomeUnknown(error) : error;
      } finally {
        this.#busy.delete(client);
        // A client whose transaction was left open is closed, which rolls it back.
        client.release(this.#mustClose(client) || client.getTransactionStatus() !== "I");
      }
    }
  }

  /** Closes the pool. Work that does not end soon loses its connection. */
  close(): Promise<void> {
    const destroy = () => {
      for (const client of this.#open) client.connection.stream.destroy();
    };
    setTimeout(destroy, CLOSE_TIMEOUT_MS).unref();
    return this.#pool.end();
  }

  #watch(client: PooledClient): void {
    this.#open.add(client);
    client.on("error", () => this.#lost.add(client));
    client.connection.on("errorMessage", (error) => {
      if (suspectsStandby(error)) this.#suspected.add(client);
    });
  }

  #mustClose(client: PooledClient): boolean {
    return this.#lost.has(client) || this.#outdated.has(client);
  }

  /** True if a standby has refused the work. Then all sessions of that server are closed. */
  async #leavesStandby(client: PooledClient): Promise<boolean> {
    if (!this.#suspected.delete(client) || this.#lost.has(client)) return false;
    // The session stays read-only if the database was read-only at its start.
    this.#outdated.add(client);
    if (!this.#finder.requiresPrimary) return false;
    if (!(await isClientOnStandby(client).catch(() => true))) return false;
    this.#finder.noteStandby(client.serverName);
    for (const each of this.#open) {
      if (each.serverName !== client.serverName) continue;
      this.#outdated.add(each);
      if (!this.#busy.has(each)) each.connection.stream.destroy();
    }
    return true;
  }

  /** Opens a client. While no connection is open and attempts fail, one caller retries and the others wait for its result. */
  async #connect(deadline: number): Promise<PooledClient> {
    for (;;) {
      if (this.#pool.ending) throw databaseUnreachable(new Error("The pool is closed."));
      let client: PooledClient | null = null;
      if (this.#retry) await this.#retry;
      else if (this.#failure && this.#open.size === 0) client = await this.#tryAgain();
      else client = await this.#attempt();
      if (client) return client;
      if (!this.#failure) continue;
      const delay = awaitedRetryDelay(this.#failures);
      if (performance.now() + delay > deadline) throw this.#refusal();
      if (this.#open.size > 0) await sleep(delay);
    }
  }

  async #tryAgain(): Promise<PooledClient | null> {
    const retry = Promise.withResolvers<void>();
    this.#retry = retry.promise;
    try {
      await sleep(awaitedRetryDelay(this.#failures));
      return await this.#attempt();
    } finally {
      this.#retry = null;
      retry.resolve();
    }
  }

  async #attempt(): Promise<PooledClient | null> {
    // Concurrent failures count as one.
    const failures = this.#failures + 1;
    try {
      const connect = () => this.#pool.connect();
      const client = (await (this.#report?.guard(connect) ?? connect())) as PooledClient;
      if (!this.#mustClose(client)) {
        this.#failures = 0;
        this.#failure = null;
        return client;
      }
      client.release(true);
      throw new Error("The connection was lost at once");
    } catch (error) {
      if ((error as Error).message === POOL_EXHAUSTED_MESSAGE) throw acquireTimeout();
      this.#failures = failures;
      this.#failure = error as Error;
      return null;
    }
  }

  #refusal(): ApiError {
    return isWithoutPrimary(this.#failure) ? noPrimary(this.#failure) : databaseUnreachable(this.#failure);
  }
}

function isWithoutPrimary(error: unknown): boolean {
  return error instanceof NoServerError && error.isAnswered;
}

/** Runs work on a connection of the database owner. */
export type AsOwner = <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

/**
 * Runs work in one transaction. Read committed regardless of the database's default: a statement that waited for a
 * locked row must see the new version.
 */
export function inOwnerTransaction<T>(asOwner: AsOwner, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  return asOwner(async (client) => {
    await client.query("begin isolation level read committed");
    try {
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      // If the connection was lost, Postgres has rolled back.
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });
}

type OwnerFunctionOptions = {
  readonly asOwner: AsOwner;
  readonly text: string;
  readonly log: Pick<Logger, "warn">;
  /** Logged once if the owner URL's role does not own the function. */
  readonly warning: string;
};

/** Calls a function of this service as the owner. Returns no rows if the function does not exist or may not be called. */
export function makeOwnerFunction<Row extends pg.QueryResultRow>({
  asOwner,
  text,
  log,
  warning,
}: OwnerFunctionOptions) {
  let hasWarned = false;
  const onRefusal = (error: unknown): Row[] => {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (UNDEFINED_FUNCTION_CODES.includes(code)) return [];
    if (code !== INSUFFICIENT_PRIVILEGE) throw error;
    if (!hasWarned) log.warn(warning);
    hasWarned = true;
    return [];
  };
  return (values: readonly unknown[]): Promise<Row[]> =>
    asOwner((client) => client.query<Row>(text, [...values])).then(({ rows }) => rows, onRefusal);
}
