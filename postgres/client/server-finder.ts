import pg from "pg";
import { type DatabaseServer, parseServers, type SessionAttributes } from "#config/connection-string";
import { ExplainedError } from "#runtime";
import { startResponsiveTimer } from "#runtime/concurrency";
import { useSafeSearchPath } from "./search-path.ts";
import { checkMessages } from "./server-messages.ts";

/** The timeout per server if there are several, so that a silent server does not delay the others for long. */
const SEARCH_TIMEOUT_MS = 3_000;
/** For this time after a failure, a server is tried after the others. Then it is chosen at random again, so that it gets its share when it is back. */
const TRIED_LAST_MS = 30_000;
/** SQLSTATE classes of a refused login and of a missing database; both need a correction by an operator. */
const LOGIN_REFUSED = /^(28|3D)/;
/** The comment keeps pgpool from sending the query to a standby. */
export const IS_IN_RECOVERY = "/*NO LOAD BALANCE*/ select pg_catalog.pg_is_in_recovery() as answer";
const IS_READ_ONLY =
  "/*NO LOAD BALANCE*/ select pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool as answer";

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refuses connections",
  ECONNRESET: "closes connections",
  ENOENT: "is not running",
  ENOTFOUND: "is not found",
  EAI_AGAIN: "is not found",
  EHOSTUNREACH: "is not reachable",
  ETIMEDOUT: "does not answer",
};
const TIMEOUT = "timeout expired";
const TIMEOUT_MESSAGES = [TIMEOUT, "Connection terminated due to connection timeout"];

/** The kind of server that each `target_session_attrs` requires; `any` accepts every session. */
const WANTED_SERVER: Readonly<Record<SessionAttributes, string>> = {
  any: "server",
  primary: "primary",
  "read-write": "primary",
  "read-only": "read-only server",
  standby: "standby",
  "prefer-standby": "server",
};

/** No server of the connection string has the required kind. */
export class NoServerError extends ExplainedError {
  override name = "NoServerError";
  /** The reason for each server that cannot be used. */
  readonly faults: readonly Error[];

  constructor(wanted: SessionAttributes, servers: readonly ServerState[]) {
    const known = servers.filter(({ fault }) => fault !== null);
    const reasons = known.map(({ name, fault }) => `${name} ${describeFault(fault!)}`);
    super(`no ${WANTED_SERVER[wanted]}: ${reasons.join(", ")}`);
    this.faults = known.map(({ fault }) => fault!);
  }

  /** True if a server of another kind answers. */
  get isAnswered(): boolean {
    return this.faults.some((fault) => fault instanceof UnsuitableServerError);
  }
}

/** The server answers, but does not have the kind that the connection string requires. */
export class UnsuitableServerError extends Error {
  override name = "UnsuitableServerError";
}

/** The options of a new client for one server. The finder limits the time, because pg also counts the time in which the event loop is blocked. */
export type ServerOptions = { readonly connectionString: string; readonly connectionTimeoutMillis: 0 };

type FoundSession<Client extends pg.Client> = { readonly client: Client; readonly serverName: string };

type ServerState = DatabaseServer & {
  /** The error of the last attempt; null after a success. */
  fault: Error | null;
  failedAt: number;
  /** True if it was a standby although its parameters said otherwise: a pooler repeats those of an earlier connection. */
  isDoubted: boolean;
};

/** Finds the server of a connection string for new sessions. Remembers the last suitable one. */
export class ServerFinder {
  readonly #wanted: SessionAttributes;
  readonly #isBalanced: boolean;
  readonly #servers: readonly ServerState[];
  #latest: ServerState | null = null;

  constructor(url: string) {
    const { servers, wanted, isBalanced } = parseServers(url);
    this.#wanted = wanted;
    this.#isBalanced = isBalanced;
    this.#servers = servers.map((server) => ({ ...server, fault: null, failedAt: 0, isDoubted: false }));
  }

  /** The names of all servers, for messages. */
  get names(): string {
    return this.#servers.map(({ name }) => name).join(",");
  }

  /** The server that the last session was opened on; null if that failed. */
  get latest(): DatabaseServer | null {
    return this.#latest;
  }

  /** True if sessions must be on a server that takes writes. */
  get requiresPrimary(): boolean {
    return WANTED_SERVER[this.#wanted] === "primary";
  }

  /** Opens a session on the first suitable server. Calls `makeClient` for each attempt; a time limit of 0 is none. */
  async connect<Client extends pg.Client>(
    makeClient: (server: ServerOptions) => Client,
    timeoutMs = 0,
  ): Promise<FoundSession<Client>> {
    const preferences = this.#wanted === "prefer-standby" ? (["standby", "any"] as const) : [this.#wanted];
    let failure: unknown = null;
    for (const wanted of preferences) {
      for (const server of this.#inOrder()) {
        const client = makeClient(optionsOf(server));
        try {
          await this.#admit(client, { server, wanted, timeoutMs, connect: () => client.connect() });
          return { client, serverName: server.name };
        } catch (error) {
          // Reports the refused login, but tries the other servers: the refusing server may still be in its set-up.
          if (failure === null || failure instanceof NoServerError) failure = this.#toFailure(error);
        }
      }
    }
    throw failure;
  }

  /**
   * Returns a client class for a pool of the service's own sessions. Each attempt uses one server; after a failure the next attempt uses
   * another one.
   */
  makePoolClient(timeoutMs: number): typeof pg.Client {
    const choose = () => this.#inOrder()[0]!;
    const admit = async (client: pg.Client, server: ServerState, connect: () => Promise<unknown>) => {
      const wanted = this.#wanted === "prefer-standby" ? "any" : this.#wanted;
      await this.#admit(client, { server, wanted, timeoutMs, connect }).catch((error) => {
        throw this.#toFailure(error);
      });
    };
    return class PooledClient extends pg.Client {
      readonly serverName: string;
      readonly #server: ServerState;
      #lost: Error | null = null;

      constructor(config?: string | pg.ClientConfig) {
        const server = choose();
        super({ ...(config as pg.ClientConfig), ...optionsOf(server) });
        this.#server = server;
        this.serverName = server.name;
        // The pool listens only after the connection was admitted, and it may be lost before that.
        this.on("error", (error) => {
          this.#lost ??= error;
        });
      }

      override connect(): Promise<this>;
      override connect(callback: (error: Error | null) => void): void;
      override connect(callback?: (error: Error | null) => void): Promise<this> | undefined {
        const connected = admit(this, this.#server, () => super.connect()).then(async () => {
          if (!this.#lost) await useSafeSearchPath(this);
          if (this.#lost) throw this.#lost;
          return this;
        });
        if (!callback) return connected;
        connected.then(() => callback(null), callback);
        return undefined;
      }
    };
  }

  /** Records that the server is a standby now. Its parameters are no longer trusted, as a pooler may repeat old ones. */
  noteStandby(name: string): void {
    for (const server of this.#servers) if (server.name === name) this.#noteStandby(server);
  }

  #noteStandby(server: ServerState): void {
    server.isDoubted = true;
    this.#noteFault(server, new UnsuitableServerError("is a standby"));
  }

  #noteFault(server: ServerState, fault: Error): void {
    server.fault = fault;
    server.failedAt = performance.now();
    if (this.#latest === server) this.#latest = null;
  }

  /** Returns the last suitable server first, and the one with the most recent failure last. */
  #inOrder(): readonly ServerState[] {
    if (this.#servers.length === 1) return this.#servers;
    const rankOf = (server: ServerState) => {
      if (this.#isBalanced) return isTriedLast(server) ? 1 + Math.random() : Math.random();
      return server === this.#latest ? Number.NEGATIVE_INFINITY : server.failedAt;
    };
    return this.#servers
      .map((server) => ({ server, rank: rankOf(server) }))
      .toSorted((one, other) => one.rank - other.rank)
      .map(({ server }) => server);
  }

  #connectLimit(timeoutMs: number): number {
    const isAlone = this.#servers.length === 1;
    return isAlone ? timeoutMs : Math.min(timeoutMs || Number.POSITIVE_INFINITY, SEARCH_TIMEOUT_MS);
  }

  async #admit(client: pg.Client, { server, wanted, timeoutMs, connect }: SessionAdmission): Promise<void> {
    checkMessages(client.connection);
    // Without a listener, the end of the connection would end the process.
    client.on("error", () => {});
    const reported = new Map<string, string>();
    if (wanted !== "any") {
      client.connection.on("parameterStatus", ({ parameterName, parameterValue }) =>
        reported.set(parameterName, parameterValue),
      );
    }
    try {
      await withinTimeLimit(client, this.#connectLimit(timeoutMs), connect());
      const session: CheckedSession = { client, reported, isDoubted: server.isDoubted };
      const objection = await withinTimeLimit(client, SEARCH_TIMEOUT_MS, findObjection(session, wanted));
      if (objection) throw new UnsuitableServerError(objection);
      server.fault = null;
      this.#latest = server;
    } catch (error) {
      if (error instanceof UnsuitableServerError) client.end().catch(() => {});
      else client.connection.stream.destroy();
      this.#noteFault(server, error as Error);
      throw error;
    }
  }

  #toFailure(error: unknown): unknown {
    const isAlone = this.#servers.length === 1 && !(error instanceof UnsuitableServerError);
    if (isAlone || LOGIN_REFUSED.test((error as pg.DatabaseError).code ?? "")) return error;
    return new NoServerError(this.#wanted, this.#servers);
  }
}

type SessionAdmission = {
  readonly server: ServerState;
  readonly wanted: SessionAttributes;
  readonly timeoutMs: number;
  readonly connect: () => Promise<unknown>;
};

function optionsOf({ url }: ServerState): ServerOptions {
  return { connectionString: url, connectionTimeoutMillis: 0 };
}

const finders = new Map<string, ServerFinder>();

/** Returns the one finder of a connection string, so that all its sessions share the known states. */
export function findServer(url: string): ServerFinder {
  const known = finders.get(url) ?? new ServerFinder(url);
  finders.set(url, known);
  return known;
}

type CheckedSession = {
  readonly client: pg.ClientBase;
  /** The parameters that the server has reported. */
  readonly reported: ReadonlyMap<string, string>;
  readonly isDoubted: boolean;
};

/** Returns the reason why the session is not the wanted one; null if it is. */
async function findObjection(session: CheckedSession, wanted: SessionAttributes): Promise<string | null> {
  switch (wanted) {
    case "any":
    case "prefer-standby":
      return null;
    case "primary":
      return (await isStandby(session)) ? "is a standby" : null;
    case "read-write":
      if (await isStandby(session)) return "is a standby";
      return (await isReadOnly(session)) ? "takes no writes (default_transaction_read_only)" : null;
    case "standby":
      return (await isStandby(session)) ? null : "is a primary";
    case "read-only":
      return (await isStandby(session)) || (await isReadOnly(session)) ? null : "takes writes";
  }
}

/** Ends the session if the server does not answer in time; a limit of 0 is none. */
async function withinTimeLimit<T>(client: pg.Client, milliseconds: number, answer: Promise<T>): Promise<T> {
  if (milliseconds === 0) return answer;
  const stop = startResponsiveTimer(milliseconds, () => client.connection.stream.destroy(new Error(TIMEOUT)));
  try {
    return await answer;
  } finally {
    stop();
  }
}

/** True if the server has failed so recently that it is tried after the others when servers are chosen at random. */
function isTriedLast({ fault, failedAt }: ServerState): boolean {
  return fault !== null && performance.now() - failedAt < TRIED_LAST_MS;
}

/** Postgres reports `in_hot_standby`; a pooler may report nothing, or a value from its own start. */
async function isStandby({ client, reported, isDoubted }: CheckedSession): Promise<boolean> {
  if (reported.get("in_hot_standby") === "off" && !isDoubted) return false;
  return askWhether(client, IS_IN_RECOVERY);
}

async function isReadOnly({ client, reported }: CheckedSession): Promise<boolean> {
  const value = reported.get("default_transaction_read_only");
  return value === undefined ? askWhether(client, IS_READ_ONLY) : value === "on";
}

/** Runs in a transaction, which a router sends to the primary, or at least to one server. */
async function askWhether(client: pg.ClientBase, condition: string): Promise<boolean> {
  await client.query("begin");
  const { rows } = await client.query<{ answer: boolean }>(condition);
  await client.query("commit");
  return rows[0]!.answer;
}

/** True if the session of a client is on a standby. Ends the client's transaction. */
export async function isClientOnStandby(client: pg.ClientBase): Promise<boolean> {
  await client.query("rollback");
  return askWhether(client, IS_IN_RECOVERY);
}

/** True if a connection is accepted by the server or the network, but gets no answer. */
export function isTimeout(fault: Error): boolean {
  return TIMEOUT_MESSAGES.includes(fault.message);
}

function describeFault(fault: Error & { code?: string }): string {
  if (fault instanceof UnsuitableServerError) return fault.message;
  if (isTimeout(fault)) return "does not answer";
  return FAULTS[fault.code ?? ""] ?? `cannot be used (${fault.message})`;
}
