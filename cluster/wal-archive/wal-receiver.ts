import { once } from "node:events";
import type { Duplex } from "node:stream";
import type pg from "pg";
import { FRAME_HEADER_BYTES, KEEPALIVE, KEEPALIVE_BYTES, standbyStatus, WAL_DATA } from "#live/stream";
import { protocolViolation } from "#postgres/client";
import { formatLsn, type Lsn } from "#postgres/database";
import type { SegmentWriter } from "./segment-writer.ts";
import { startOfSegment } from "./wal-segments.ts";

type WalReceiverOptions = {
  readonly client: pg.Client;
  readonly slot: string;
  readonly timeline: number;
  readonly segmentBytes: number;
  readonly writer: SegmentWriter;
  /** Receives the position up to which everything is on disk, and the time until which all commits are. */
  readonly onProgress: (lsn: Lsn, at: Date) => Promise<void>;
  /** Throws if there is no space for more. */
  readonly checkSpace: () => Promise<void>;
};

/** The maximum time of commits that are lost with the disk of the database. */
const SYNC_INTERVAL_MS = 1_000;
/** The maximum size of frames that wait to be written; beyond that, the server waits. */
const MAX_QUEUED_BYTES = 4 * 2 ** 20;
/** The microseconds of Postgres's clock begin in 2000. */
const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1);
/** A server that sends nothing for this time, despite a requested reply, counts as gone. */
const SILENCE_MS = 60_000;

/** Streams the WAL from a physical slot into an archive, like pg_receivewal. */
export class WalReceiver {
  readonly #options: WalReceiverOptions;
  readonly #socket: Duplex;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  /** Null while nothing is written. */
  #working: Promise<void> | null = null;
  #isPaused = false;
  #heardAt = performance.now();
  /** The position at which the server had nothing else to send, with the time of its clock. */
  #caughtUp: { readonly lsn: Lsn; readonly at: Date } | null = null;
  #isSyncDue = false;
  #isAnswerDue = false;

  constructor(options: WalReceiverOptions) {
    this.#options = options;
    this.#socket = options.client.connection.stream;
  }

  /** Resolves when the server has shut down after sending all WAL; rejects if the stream breaks. */
  async run(signal: AbortSignal): Promise<void> {
    const { client, slot, timeline, writer, segmentBytes } = this.#options;
    client.connection.on("copyData", ({ chunk }: { chunk: Buffer }) => this.#receive(chunk));
    const from = formatLsn(startOfSegment(writer.next, segmentBytes));
    const ended = client.query(`START_REPLICATION SLOT ${slot} PHYSICAL ${from} TIMELINE ${timeline}`);
    ended.catch(() => {});
    const abandon = () => this.#socket.destroy();
    signal.addEventListener("abort", abandon);
    const timer = setInterval(() => this.#tick(), SYNC_INTERVAL_MS);
    try {
      await Promise.race([once(client.connection, "replicationStart"), ended]);
      await ended;
      await this.#settle();
    } finally {
      clearInterval(timer);
      signal.removeEventListener("abort", abandon);
    }
  }

  #tick(): void {
    if (performance.now() - this.#heardAt > SILENCE_MS && !this.#isPaused) {
      this.#socket.destroy(new Error("Postgres does not answer"));
      return;
    }
    this.#isSyncDue = true;
    this.#work();
  }

  #receive(frame: Buffer): void {
    this.#heardAt = performance.now();
    // The buffer of the frame is overwritten by the next read.
    this.#queue.push(Buffer.from(frame));
    this.#queuedBytes += frame.length;
    if (this.#queuedBytes > MAX_QUEUED_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.pause();
    }
    this.#work();
  }

  /** Runs one write or sync at a time; the first error ends the stream. */
  #work(): void {
    this.#working ??= this.#drain()
      .catch((error: Error) => void this.#socket.destroy(error))
      .finally(() => {
        this.#working = null;
      });
  }

  async #drain(): Promise<void> {
    for (;;) {
      const frames = this.#queue;
      this.#queue = [];
      this.#queuedBytes = 0;
      if (this.#isPaused) {
        this.#isPaused = false;
        this.#socket.resume();
      }
      for (const frame of frames) await this.#read(frame);
      if (this.#isSyncDue || this.#isAnswerDue) await this.#sync();
      if (this.#queue.length === 0 && !this.#isSyncDue && !this.#isAnswerDue) return;
    }
  }

  async #read(frame: Buffer): Promise<void> {
    const { writer } = this.#options;
    if (frame[0] === WAL_DATA && frame.length > FRAME_HEADER_BYTES) {
      await writer.write(frame.readBigUInt64BE(1), frame.subarray(FRAME_HEADER_BYTES));
    } else if (frame[0] === KEEPALIVE && frame.length === KEEPALIVE_BYTES) {
      this.#noteClock(frame.readBigUInt64BE(1), frame.readBigInt64BE(9));
      // A server that shuts down waits for this reply.
      if (frame[17] === 1) this.#isAnswerDue = true;
    } else {
      throw protocolViolation("in the WAL, a message of an unknown kind");
    }
  }

  #noteClock(sent: Lsn, microseconds: bigint): void {
    const { next } = this.#options.writer;
    const at = new Date(POSTGRES_EPOCH_MS + Number(microseconds / 1000n));
    if (sent > next) return;
    this.#caughtUp = { lsn: next, at };
    this.#isAnswerDue = true;
  }

  async #sync(): Promise<void> {
    const { writer, onProgress, checkSpace } = this.#options;
    const wanted = this.#isSyncDue ? "answer" : null;
    this.#isSyncDue = false;
    this.#isAnswerDue = false;
    await checkSpace();
    await writer.sync();
    if (this.#caughtUp && this.#caughtUp.lsn <= writer.synced) {
      await onProgress(this.#caughtUp.lsn, this.#caughtUp.at);
      this.#caughtUp = null;
    }
    this.#socket.write(standbyStatus(writer.next, writer.synced, wanted));
  }

  /** Writes and syncs the received WAL after the end of the stream. */
  async #settle(): Promise<void> {
    await this.#working;
    const { writer, onProgress } = this.#options;
    await writer.sync();
    await onProgress(writer.synced, new Date());
  }
}
