import { once } from "node:events";
import type { Duplex } from "node:stream";
import pg from "pg";
import { findServer, protocolViolation, type ServerOptions } from "#postgres/client";
import { formatLsn, type Lsn } from "#postgres/database";
import { unavailable } from "#runtime";
import type { StreamHistory } from "./changes.ts";
import { type HandlerResult, PgoutputDecoder, type WalHandler } from "./pgoutput.ts";
import {
  FRAME_HEADER_BYTES,
  KEEPALIVE,
  KEEPALIVE_BYTES,
  makeReplicationClient,
  standbyStatus,
  WAL_DATA,
} from "./replication-connection.ts";
import { createTemporarySlot, type ReplicationSlot, type ReplicationSlotOptions } from "./replication-slots.ts";
import { readStreamHistory } from "./stream-history.ts";

export type ReplicationSessionOptions = ReplicationSlotOptions & {
  readonly url: string;
  readonly applicationName: string;
  /** The timeout for the reader to handle a message, and for Postgres to respond. */
  readonly patienceMs: number;
};

export type ReplicationHandler = WalHandler & {
  /** Everything below this position has been received. */
  passed(next: Lsn): HandlerResult;
  /** The position from which the WAL must be read again after a reconnect. */
  next(): Lsn;
  /** Postgres does not answer for a while. The connection stays open for now. */
  stalled(reason: string): void;
  /** Reading continues after the stall. */
  continued(): void;
};

type OpenedConnection = {
  readonly client: pg.Client;
  readonly server: ServerOptions;
  readonly history: StreamHistory;
  /** The names of built-in types. */
  readonly builtIn: ReadonlyMap<number, string>;
};

/** The delay of a status update, to combine several. Each one makes Postgres write and wake up. */
const STATUS_DELAY_MS = 1_000;

const CONNECT_TIMEOUT_MS = 10_000;
/** The timeout for statements that wait for nothing. */
const ANSWER_TIMEOUT_MS = 15_000;
const SILENT = "Postgres does not answer";
/** How often progress is checked while patience lasts. */
const CHECKS = 5;
/** The number of checks without progress after which a request for an answer is late. */
const LATE_CHECKS = 2;
/** How long reading pauses before the server is watched. */
const WATCH_DELAY_MS = 1_000;
const ADVICE: Readonly<Record<string, string>> = {
  "42501": "the database's owner may not replicate. As a superuser, run: alter role … replication",
  "08P01": "the owner's connection goes through a pooler. Set DIRECT_DATABASE_URL to Postgres itself.",
};

/** Settings of the output functions, so that values have one format. */
const OUTPUT_SETTINGS = `set datestyle = 'ISO'; set timezone = 'UTC'; set intervalstyle = 'postgres'; set extra_float_digits = 1;
  set bytea_output = 'hex'; set search_path = ''; set statement_timeout = 0; set idle_session_timeout = 0`;

/** A connection that reads the WAL through a slot of its own until it ends. */
export class ReplicationSession {
  readonly history: StreamHistory;
  readonly #client: pg.Client;
  readonly #server: ServerOptions;
  readonly #socket: Duplex;
  readonly #options: ReplicationSessionOptions;
  readonly #decoder: PgoutputDecoder;
  #slot: ReplicationSlot | null = null;
  #handler: ReplicationHandler | null = null;
  #statusTimer: NodeJS.Timeout | undefined;
  #progressTimer: NodeJS.Timeout | undefined;
  #framesRead = 0;
  #framesSeen = 0;
  /** Checks in a row without progress. */
  #silentChecks = 0;
  #reported: Lsn = 0n;
  /** Messages that arrived while the reader was busy, from one read of the socket. */
  #held: Buffer[] | null = null;
  #watchTimer: NodeJS.Timeout | undefined;
  #stopWatching: (() => void) | null = null;

  static async open(options: ReplicationSessionOptions, abandoned: AbortSignal): Promise<ReplicationSession> {
    let current: pg.Client | null = null;
    let currentServer: ServerOptions | null = null;
    const makeClient = (server: ServerOptions) => {
      abandoned.throwIfAborted();
      currentServer = server;
      current = makeReplicationClient(server, options.applicationName);
      return current;
    };
    const destroy = () => current?.connection.stream.destroy();
    return untilAbandoned(abandoned, destroy, async () => {
      const { client } = await findServer(options.url).connect(makeClient, CONNECT_TIMEOUT_MS);
      const { history, builtIn } = await answered(client.connection.stream, () => prepareSession(client));
      return new ReplicationSession({ client, server: currentServer!, history, builtIn }, options);
    });
  }

  private constructor(opened: OpenedConnection, options: ReplicationSessionOptions) {
    this.#client = opened.client;
    this.#server = opened.server;
    this.#socket = opened.client.connection.stream;
    this.history = opened.history;
    this.#options = options;
    this.#decoder = new PgoutputDecoder(opened.builtIn);
  }

  /** Null before the slot is created. */
  get slot(): ReplicationSlot | null {
    return this.#slot;
  }

  /** Waits for transactions that are running, unless the slot is a copy. */
  async createSlot(abandoned: AbortSignal, goneFrom: string | null): Promise<ReplicationSlot> {
    const work = () => createTemporarySlot(this.#client, { ...this.#options, goneFrom });
    const slot = await untilAbandoned(abandoned, () => this.#socket.destroy(), work);
    this.#slot = slot;
    return slot;
  }

  /** Starts reading at the reader's position. The inner promise rejects when reading ends for any reason. */
  async start(reader: ReplicationHandler): Promise<{ ended: Promise<never> }> {
    this.#handler = reader;
    this.#reported = reader.next();
    this.#client.connection.on("copyData", ({ chunk }: { chunk: Buffer }) => this.#receive(chunk));
    const publications = pg.escapeLiteral(pg.escapeIdentifier(this.#options.publication));
    const command = `START_REPLICATION SLOT ${this.#slot!.name} LOGICAL ${formatLsn(reader.next())}
      (proto_version '1', publication_names ${publications}, messages 'true')`;
    const ended = this.#client.query(command).then(() => {
      throw new Error("The server ended the stream");
    });
    // A failure before the start is reported by the race below.
    ended.catch(() => this.close());
    const started = once(this.#client.connection, "replicationStart");
    await answered(this.#socket, () => Promise.race([started, ended]));
    this.#progressTimer = setInterval(() => this.#checkProgress(), this.#options.patienceMs / CHECKS);
    return { ended };
  }

  /** Closes at once; Postgres drops the temporary slot. */
  close(): void {
    clearTimeout(this.#statusTimer);
    clearInterval(this.#progressTimer);
    clearTimeout(this.#watchTimer);
    this.#stopWatching?.();
    this.#handler = null;
    this.#socket.destroy();
  }

  #receive(frame: Buffer): void {
    if (this.#held) {
      // The buffer of the frame is overwritten by the next read.
      this.#held.push(Buffer.from(frame));
      return;
    }
    try {
      const handled = this.#read(frame);
      if (handled) this.#pauseUntilHandled(handled);
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }

  #read(frame: Buffer): HandlerResult {
    if (!this.#handler) return;
    this.#framesRead++;
    this.#statusLater();
    if (frame[0] === WAL_DATA && frame.length > FRAME_HEADER_BYTES)
      return this.#decoder.read(frame, FRAME_HEADER_BYTES, this.#handler);
    if (frame[0] === KEEPALIVE && frame.length === KEEPALIVE_BYTES) return this.#keepAlive(frame, this.#handler);
    throw protocolViolation("in the change stream, a message of an unknown kind");
  }

  #keepAlive(frame: Buffer, reader: ReplicationHandler): HandlerResult {
    const passed = reader.passed(frame.readBigUInt64BE(1));
    // A server that shuts down waits for this reply.
    if (frame[17] === 1) this.#sendStatus();
    return passed;
  }

  /** Pauses the socket; Postgres waits when the buffers are full. */
  async #pauseUntilHandled(handled: Promise<void>): Promise<void> {
    const held: Buffer[] = [];
    this.#held = held;
    this.#socket.pause();
    this.#watchTimer ??= setTimeout(() => this.#watchServer(), WATCH_DELAY_MS);
    try {
      await handled;
      for (let at = 0; at < held.length; at++) await this.#read(held[at]!);
      this.#held = null;
      this.#socket.resume();
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }

  /**
   * A server that shuts down waits until everything has been read, as long as followers take, and says so in the stream only. It ends
   * other sessions at once: reading then continues later, and at a standby that takes the server's place.
   */
  #watchServer(): void {
    this.#watchTimer = undefined;
    if (!this.#held || !this.#handler || this.#stopWatching) return;
    this.#stopWatching = watchForShutdown(this.#server, this.#options.applicationName, () =>
      this.#socket.destroy(new Error("The server shuts down")),
    );
  }

  /** Checks for progress: a broken network sends nothing, and a reader may hang. */
  #checkProgress(): void {
    const goesOn = this.#framesRead !== this.#framesSeen;
    this.#framesSeen = this.#framesRead;
    if (!this.#held) {
      this.#stopWatching?.();
      this.#stopWatching = null;
    }
    if (goesOn) {
      if (this.#silentChecks >= LATE_CHECKS) this.#handler?.continued();
      this.#silentChecks = 0;
      // Keepalive requests are not read while the socket is paused, so Postgres would time out.
      if (this.#held) this.#sendStatus();
      return;
    }
    this.#silentChecks++;
    if (this.#held) {
      // Postgres cannot terminate a connection that blocks on a write. Checkpoints would wait for the termination once the slot has fallen too far
      // behind.
      if (this.#silentChecks >= CHECKS) this.#socket.destroy(new Error("What follows the changes does not go on"));
    } else if (this.#silentChecks === 1) this.#sendStatus("answer");
    else if (this.#silentChecks === LATE_CHECKS) this.#handler?.stalled(SILENT);
    else if (this.#silentChecks > CHECKS) this.#socket.destroy(new Error(SILENT));
  }

  #statusLater(): void {
    this.#statusTimer ??= setTimeout(() => {
      this.#statusTimer = undefined;
      if (this.#handler?.next() !== this.#reported) this.#sendStatus();
    }, STATUS_DELAY_MS);
  }

  #sendStatus(wanted: "answer" | null = null): void {
    if (!this.#handler) return;
    this.#reported = this.#handler.next();
    this.#socket.write(standbyStatus(this.#reported, this.#reported, wanted));
  }
}

async function prepareSession(client: pg.Client): Promise<Pick<OpenedConnection, "history" | "builtIn">> {
  await client.query(OUTPUT_SETTINGS);
  const history = await readStreamHistory(client);
  const types = await client.query<{ oid: number; typname: string }>(
    "select oid::pg_catalog.int4, typname from pg_catalog.pg_type where oid < 10000",
  );
  return { history, builtIn: new Map(types.rows.map(({ oid, typname }) => [oid, typname])) };
}

/** Closes the connection if the server does not answer, for example because it is frozen or has vanished from the network. */
async function answered<Result>(socket: Duplex, work: () => Promise<Result>): Promise<Result> {
  const late = () => socket.destroy(new Error(SILENT));
  const timer = setTimeout(late, ANSWER_TIMEOUT_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a session that the server ends when it shuts down. Returns a function that closes it. */
function watchForShutdown(server: ServerOptions, applicationName: string, onShutdown: () => void): () => void {
  const client = new pg.Client({ ...server, fallback_application_name: applicationName });
  let isWatching = true;
  const stop = () => {
    isWatching = false;
    client.connection.stream.destroy();
  };
  const end = (error?: unknown) => {
    // The server may have too many sessions, for example: without the watch, shutting down takes longer.
    const isRefused = error instanceof pg.DatabaseError && !error.code?.startsWith("57P");
    if (isWatching && !isRefused) onShutdown();
    stop();
  };
  client.on("error", end);
  client.on("end", end);
  client
    .connect()
    .then(() => client.query("set idle_session_timeout = 0"))
    .catch(end);
  return stop;
}

/** Closes the connection if the work fails or is abandoned. */
async function untilAbandoned<Result>(
  abandoned: AbortSignal,
  destroy: () => void,
  work: () => Promise<Result>,
): Promise<Result> {
  abandoned.addEventListener("abort", destroy);
  try {
    abandoned.throwIfAborted();
    return await work();
  } catch (error) {
    destroy();
    throw withAdvice(error);
  } finally {
    abandoned.removeEventListener("abort", destroy);
  }
}

/** Errors that need an administrator, with advice. */
function withAdvice(error: unknown): unknown {
  const advice = error instanceof pg.DatabaseError && error.code ? ADVICE[error.code] : undefined;
  return advice ? unavailable(`Changes are not streamed: ${advice}`, error) : error;
}
