import { randomInt } from "node:crypto";
import type { Lsn } from "#postgres/database";
import { unavailable } from "#runtime";
import type { AbortLike } from "#runtime/concurrency";
import type { LiveQueries } from "../queries/live-queries.ts";
import type { LiveSource, LiveSubscription } from "../queries/live-subscriber.ts";
import type { RowsByKey } from "../queries/table-rows.ts";
import type { ShapeDefinition } from "./shape-definition.ts";
import { LOG_NUMBERS, ShapeLog, type ShapePosition } from "./shape-log.ts";
import { ownerOf, ShapeLogFile } from "./shape-log-file.ts";
import type { ShapeLogFolder } from "./shape-log-folder.ts";

/** After this time without a request, the query is closed and the log is kept: no query runs for clients that have left. */
const IDLE_MS = 5_000;
const WAIT_MS = 60_000;

type ShapeOptions = {
  readonly definition: ShapeDefinition;
  readonly live: LiveQueries;
  readonly source: LiveSource;
  /** Null: the log ends with the process. */
  readonly folder: ShapeLogFolder | null;
  /** The query cannot run any more. */
  onFailed(shape: LiveShape): void;
  /** The log has grown by so many bytes, or shrunk. */
  onGrown(shape: LiveShape, bytes: number): void;
};

/** A shape of one caller: its log, which a live query writes while there are requests. */
export class LiveShape {
  readonly definition: ShapeDefinition;
  readonly log: ShapeLog;
  /** The names by which clients know the shape, the newest last. */
  readonly handles: string[] = [];
  source: LiveSource;
  readonly file: ShapeLogFile | null;
  lastUsedAt = Date.now();
  isClosed = false;
  readonly #live: LiveQueries;
  readonly #onFailed: ShapeOptions["onFailed"];
  readonly #onGrown: ShapeOptions["onGrown"];
  /** The bytes that were reported last. */
  bytes = 0;
  #subscription: LiveSubscription | null = null;
  #attaching: Promise<void> | null = null;
  #users = 0;
  #idle: NodeJS.Timeout | undefined;
  /** Commits that the next state of the log has. */
  #newXids: number[] = [];
  /** A snapshot whose transactions the next state of the log has. */
  #newSnapshot: string | null = null;
  readonly #waiting = new Set<() => void>();

  constructor({ definition, live, source, folder, onFailed, onGrown }: ShapeOptions) {
    const number = randomInt(LOG_NUMBERS);
    this.definition = definition;
    this.file = folder && new ShapeLogFile(folder, number, ownerOf(definition, source));
    this.log = new ShapeLog(definition.keyPlaces, number, this.file);
    this.source = source;
    this.#live = live;
    this.#onFailed = onFailed;
    this.#onGrown = onGrown;
  }

  get isInUse(): boolean {
    return this.#users > 0;
  }

  get isAttached(): boolean {
    return this.#subscription !== null;
  }

  /** True if the rows are those of this caller, with these claims. */
  isOf({ caller }: LiveSource): boolean {
    const { role, claimsText } = this.source.caller;
    return caller.role === role && caller.claimsText === claimsText;
  }

  /** Call before `attach`: the query then stays open until `leave`. */
  enter(): void {
    clearTimeout(this.#idle);
    this.#users++;
  }

  leave(): void {
    this.lastUsedAt = Date.now();
    this.file?.touch();
    if (--this.#users === 0) this.#idle = setTimeout(() => this.#detach(), IDLE_MS).unref();
  }

  /** Resolves when the log has the state of a run after the query was opened. All changes while it was closed become one change. */
  attach(): Promise<void> {
    this.#attaching ??= this.#subscription
      ? null
      : this.#openQuery().finally(() => {
          this.#attaching = null;
        });
    return this.#attaching ?? Promise.resolve();
  }

  /** Continues with a new token of the same caller: the differences that the token makes become one change. */
  replaceSource(source: LiveSource): Promise<void> {
    this.source = source;
    this.file?.changeOwner(ownerOf(this.definition, source), this.log.position, this.log.rows);
    this.#detach();
    return this.attach();
  }

  /** Resolves when the log is past the position, in the end after some time. */
  async changed(position: ShapePosition, milliseconds: number, signal: AbortLike | null): Promise<void> {
    if (this.log.position > position || this.isClosed || !this.#subscription || signal?.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(resolve, milliseconds).unref();
    signal?.addEventListener("abort", () => resolve());
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  /**
   * Serves a client that has read rows apart from the log, in a snapshot in which the shape's statement returns this text. A later commit may
   * have restored the log's rows, which is no change of the log. Rejects when the client has left.
   */
  async reconcile(text: string, signal: AbortLike): Promise<void> {
    const version = await orAborted(this.#subscription?.refresh(), signal);
    if (!version) throw unavailable("The shape was closed: connect again.");
    this.#accept(version.text, version.position, null);
    this.log.reconcile(text);
    this.#reportBytes();
    this.#wake();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.#idle);
    this.#detach();
  }

  /** Opens the query, and opens it again if the token was replaced in the meantime. */
  async #openQuery(): Promise<void> {
    for (;;) {
      const { source } = this;
      const onCommits = (xids: readonly number[]) => {
        if (this.source === source) this.#collect(xids);
      };
      const onSnapshot = (snapshot: string) => {
        if (this.source !== source) return;
        this.#newSnapshot = snapshot;
        this.#collect([]);
      };
      const subscription = await this.#live.open({ ...source, onCommits, onSnapshot });
      try {
        if (this.source === source && !this.isClosed) {
          this.#subscription = subscription;
          if (await this.#takeEvent(subscription)) return void this.#follow(subscription);
        }
      } catch (error) {
        this.#detach();
        throw error;
      }
      subscription.close();
      if (this.source === source || this.isClosed) throw unavailable("The shape was closed: connect again.");
    }
  }

  async #follow(subscription: LiveSubscription): Promise<void> {
    try {
      while (await this.#takeEvent(subscription));
      if (this.#subscription === subscription) this.#detach();
    } catch {
      // The next request runs it anew, and gets the error.
      this.close();
      this.#onFailed(this);
    }
  }

  /** Returns false if the query has ended. */
  async #takeEvent(subscription: LiveSubscription): Promise<boolean> {
    const event = await subscription.next(WAIT_MS);
    if (event === null || this.#subscription !== subscription) return false;
    if (event !== "idle") {
      this.#accept(event.result, event.position, event.rows);
      this.#wake();
    }
    return true;
  }

  #accept(text: string, position: Lsn, rows: RowsByKey | null): void {
    this.log.accept(text, position, this.#newXids, rows);
    this.#newXids = [];
    this.#acceptSnapshot();
    this.#reportBytes();
  }

  #acceptSnapshot(): void {
    if (this.#newSnapshot !== null) this.log.acceptSnapshot(this.#newSnapshot);
    this.#newSnapshot = null;
  }

  #reportBytes(): void {
    const growth = this.log.bytes - this.bytes;
    this.bytes += growth;
    if (growth !== 0) this.#onGrown(this, growth);
  }

  /** Collects commits. If they have changed the rows, the event with the rows comes first. Else clients learn of them with the next response. */
  #collect(xids: readonly number[]): void {
    this.#newXids.push(...xids);
    setImmediate(() => {
      if (this.#attaching) return;
      this.log.acceptUnchanged(this.#newXids);
      this.#newXids = [];
      this.#acceptSnapshot();
      this.#reportBytes();
    });
  }

  #detach(): void {
    const subscription = this.#subscription;
    this.#subscription = null;
    subscription?.close();
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }
}

/** Rejects when the signal is aborted, which does not end the work. */
async function orAborted<Result>(work: Promise<Result> | undefined, signal: AbortLike): Promise<Result | undefined> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
