import { hash } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import pg from "pg";
import { formatLsn, type Lsn } from "../database/lsn.ts";
import { unavailable } from "../errors.ts";
import { type HandlerResult, PgoutputDecoder, type WalHandler } from "./pgoutput.ts";
import { createTemporarySlot, type ReplicationSlot, type ReplicationSlotOptions } from "./replication-slots.ts";

export type ReplicationSessionOptions = ReplicationSlotOptions & {
  readonly url: string;
  readonly applicationName: string;
  /** How long the reader may take for one thing, and Postgres for an answer. */
  readonly patienceMs: number;
};

export type ReplicationHandler = WalHandler & {
  /** Nothing of the log below it is still to come. */
  passed(next: Lsn): HandlerResult;
  /** Where the log goes on after what was read and needs not be read again. */
  next(): Lsn;
};

/** How long a status may wait for more to report. Each one makes Postgres write and wake up. */
const STATUS_DELAY_MS = 1_000;

const CONNECT_TIMEOUT_MS = 10_000;
const ADVICE: Readonly<Record<string, string>> = {
  "42501": "the database's owner may not replicate. As a superuser, run: alter role … replication",
  "08P01": "the owner's connection goes through a pooler. Let OWNER_DATABASE_URL go to Postgres itself.",
};
const HISTORY_LENGTH = 8;
const FRAME_HEADER_BYTES = 25;
const WAL_DATA = "w".charCodeAt(0);
const KEEPALIVE = "k".charCodeAt(0);

/** What output functions heed, so that a value is always written in one way. */
const OUTPUT_SETTINGS = `set datestyle = 'ISO'; set timezone = 'UTC'; set intervalstyle = 'postgres'; set extra_float_digits = 1;
  set bytea_output = 'hex'; set search_path = ''; set statement_timeout = 0; set idle_session_timeout = 0`;

/** One connection that reads the log in a slot of its own, from where it is told to until the connection ends. */
export class ReplicationSession {
  readonly slot: ReplicationSlot;
  /** The cluster and its timeline, which is a new one when a standby is promoted: positions mean something else there. */
  readonly history: string;
  readonly #client: pg.Client;
  readonly #socket: Duplex;
  readonly #options: ReplicationSessionOptions;
  readonly #decoder: PgoutputDecoder;
  #handler: ReplicationHandler | null = null;
  #statusTimer: NodeJS.Timeout | undefined;
  #progressTimer: NodeJS.Timeout | undefined;
  #framesRead = 0;
  #framesSeen = 0;
  #isAnswerAwaited = false;
  #reported: Lsn = 0n;
  /** Messages that arrived while the reader was busy: those of one read from the socket. */
  #held: Buffer[] | null = null;

  static async open(options: ReplicationSessionOptions, abandoned: AbortSignal): Promise<ReplicationSession> {
    const client = new pg.Client({
      connectionString: options.url,
      fallback_application_name: options.applicationName,
      replication: "database",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    } as pg.ClientConfig);
    // Its loss fails what is asked of it; this one would end the process.
    client.on("error", () => {});
    const destroy = () => client.connection.stream.destroy();
    // A slot may have to wait for somebody's transaction.
    abandoned.addEventListener("abort", destroy);
    try {
      abandoned.throwIfAborted();
      await client.connect();
      await client.query(OUTPUT_SETTINGS);
      const system = await client.query<{ systemid: string; timeline: number }>("IDENTIFY_SYSTEM");
      const types = await client.query<{ oid: number; typname: string }>(
        "select oid::int4, typname from pg_catalog.pg_type where oid < 10000",
      );
      const builtIn = new Map(types.rows.map(({ oid, typname }) => [oid, typname]));
      const slot = await createTemporarySlot(client, options);
      const { systemid, timeline } = system.rows[0]!;
      return new ReplicationSession(
        client,
        slot,
        hash("sha256", `${systemid}/${timeline}`, "hex").slice(0, HISTORY_LENGTH),
        options,
        builtIn,
      );
    } catch (error) {
      destroy();
      throw withAdvice(error);
    } finally {
      abandoned.removeEventListener("abort", destroy);
    }
  }

  private constructor(
    client: pg.Client,
    slot: ReplicationSlot,
    history: string,
    options: ReplicationSessionOptions,
    builtIn: ReadonlyMap<number, string>,
  ) {
    this.#client = client;
    this.#socket = client.connection.stream;
    this.slot = slot;
    this.history = history;
    this.#options = options;
    this.#decoder = new PgoutputDecoder(builtIn);
  }

  /** Reads from there on. The inner promise rejects when that ends, for whatever reason. */
  async start(reader: ReplicationHandler): Promise<{ ended: Promise<never> }> {
    this.#handler = reader;
    this.#reported = reader.next();
    this.#client.connection.on("copyData", ({ chunk }: { chunk: Buffer }) => this.#receive(chunk));
    const publications = pg.escapeLiteral(pg.escapeIdentifier(this.#options.publication));
    const command = `START_REPLICATION SLOT ${this.slot.name} LOGICAL ${formatLsn(reader.next())}
      (proto_version '1', publication_names ${publications}, messages 'true')`;
    const ended = this.#client.query(command).then(() => {
      throw new Error("The server ended the stream");
    });
    // Whoever waits for the start is told, and who waits for the end comes later.
    ended.catch(() => this.close());
    await Promise.race([once(this.#client.connection, "replicationStart"), ended]);
    this.#progressTimer = setInterval(() => this.#checkProgress(), this.#options.patienceMs);
    return { ended };
  }

  /** At once; Postgres lets go of the slot. */
  close(): void {
    clearTimeout(this.#statusTimer);
    clearInterval(this.#progressTimer);
    this.#handler = null;
    this.#socket.destroy();
  }

  #receive(frame: Buffer): void {
    if (this.#held) {
      // What the frame lies in is overwritten by the next read.
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
    if (frame[0] === WAL_DATA) return this.#decoder.read(frame, FRAME_HEADER_BYTES, this.#handler);
    if (frame[0] === KEEPALIVE) return this.#keepAlive(frame, this.#handler);
  }

  #keepAlive(frame: Buffer, reader: ReplicationHandler): HandlerResult {
    const passed = reader.passed(frame.readBigUInt64BE(1));
    // A server that shuts down waits for this answer.
    if (frame[17] === 1) this.#sendStatus();
    return passed;
  }

  /** Postgres waits, when the buffers between it and us are full. */
  async #pauseUntilHandled(handled: Promise<void>): Promise<void> {
    const held: Buffer[] = [];
    this.#held = held;
    this.#socket.pause();
    try {
      await handled;
      for (let at = 0; at < held.length; at++) await this.#read(held[at]!);
      this.#held = null;
      this.#socket.resume();
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
  }

  /** Whether it goes on: a wire that was cut says nothing, and a reader may hang. */
  #checkProgress(): void {
    const goesOn = this.#framesRead !== this.#framesSeen;
    this.#framesSeen = this.#framesRead;
    if (goesOn) {
      this.#isAnswerAwaited = false;
      // Postgres's own questions are not seen while the socket is not read, and it would give up.
      if (this.#held) this.#sendStatus();
    } else if (this.#held) {
      // A connection that nobody reads cannot be ended by Postgres, and checkpoints would wait for that as soon as the slot
      // has fallen too far behind.
      this.#socket.destroy(new Error("What follows the changes does not go on"));
    } else if (this.#isAnswerAwaited) {
      this.#socket.destroy(new Error("Postgres does not answer"));
    } else {
      this.#isAnswerAwaited = true;
      this.#sendStatus("answer");
    }
  }

  #statusLater(): void {
    this.#statusTimer ??= setTimeout(() => {
      this.#statusTimer = undefined;
      if (this.#handler?.next() !== this.#reported) this.#sendStatus();
    }, STATUS_DELAY_MS);
  }

  /** https://www.postgresql.org/docs/current/protocol-replication.html: written, flushed and applied, our clock, whether an answer is wanted. */
  #sendStatus(wanted: "answer" | null = null): void {
    if (!this.#handler) return;
    this.#reported = this.#handler.next();
    const message = Buffer.alloc(1 + 4 + 34);
    message.write("d");
    message.writeInt32BE(4 + 34, 1);
    message.write("r", 5);
    for (const at of [6, 14, 22]) message.writeBigUInt64BE(this.#reported, at);
    message[38] = wanted ? 1 : 0;
    this.#socket.write(message);
  }
}

/** What will not mend itself, in words that say what to do. */
function withAdvice(error: unknown): unknown {
  const advice = error instanceof pg.DatabaseError && error.code ? ADVICE[error.code] : undefined;
  return advice ? unavailable(`Changes are not streamed: ${advice}`, error) : error;
}
