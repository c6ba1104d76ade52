import type { Caller } from "#accounts/identity";
import type { ShownRows } from "#planner/shown-tables";
import type { Lsn } from "#postgres/database";
import type { CallerStatement } from "../dependencies/dependency-cache.ts";
import type { ReadFilter } from "../matching/affected-rows.ts";
import type { ResultVersion, RowsRun, SharedResult } from "./shared-result.ts";
import type { ReadRows, RowsByKey } from "./table-rows.ts";

/** A query of a caller, as an interface runs it. */
export type LiveSource = {
  /** Callers of one audience whose requests are equal have the same result. */
  readonly request: string;
  readonly caller: Caller;
  /** Counts the open queries of a caller. */
  readonly quotaKey: string;
  /** True if the result may differ between callers of one audience, for example because a function of the operator runs first. */
  readonly isPrivate: boolean;
  /** True if the query serves later requests of the caller too: it then must not depend on the request that opened it. */
  readonly outlivesRequest?: boolean;
  /** Called with the numbers of transactions, as the log has them, whose commits are in the result. Most commits that cannot change it are left out. */
  onCommits?(xids: readonly number[]): void;
  /** Called with a snapshot (`pg_current_snapshot()`) whose transactions are all in the result. */
  onSnapshot?(snapshot: string): void;
  /** Present if the query is this statement: then it is known before a run who shares the result. */
  readonly statement?: CallerStatement;
  /** Present if the result is the rows of one table, as arrays of the texts of these columns in the order of the key. */
  readonly rows?: ReadRows;
  /** Runs the query in one snapshot. Rejects as the request itself does. */
  run(): Promise<LiveResult>;
};

export type LiveResult = RowsRun & {
  /** JSON. */
  readonly text: string;
  readonly statements: readonly CallerStatement[];
  /** Conditions that each row of the result meets. */
  readonly filters: readonly ReadFilter[];
  /** The rows that the text is known to have. */
  readonly shown: readonly ShownRows[];
  /** Why there is no such row; the text is then `null`. Null if there is a result. */
  readonly missing: unknown;
};

export type LiveEvent = {
  readonly kind: "snapshot" | "change";
  readonly position: Lsn;
  /** The whole result, or the JSON Patch that makes it of the one before, which is computed when it is read. */
  readonly text: string;
  /** The whole result. */
  readonly result: string;
  /** The rows of the result, if they are known. */
  readonly rows: RowsByKey | null;
};

export type LiveSubscription = {
  /** Null when the query has ended; `idle` if nothing has changed in that time. Rejects where the query cannot run any more. */
  next(milliseconds: number): Promise<LiveEvent | "idle" | null>;
  /** The result of a run that began after the call; null when the query has ended. */
  refresh(): Promise<ResultVersion | null>;
  close(): void;
};

export type LiveQueryResult = SharedResult<LiveSubscriber>;

/** One client of a live query. It receives the latest result whenever it takes one, so results may be skipped. */
export class LiveSubscriber implements LiveSubscription {
  readonly source: LiveSource;
  readonly #onClosed: (subscriber: LiveSubscriber) => void;
  #result: LiveQueryResult | null = null;
  /** The last change to another result. */
  #change: Promise<void> | null = null;
  #sent: ResultVersion | null = null;
  #failure: { readonly error: unknown } | null = null;
  #isClosed = false;
  /** Ends the wait for a change. */
  #wake: (() => void) | null = null;

  constructor(source: LiveSource, onClosed: (subscriber: LiveSubscriber) => void) {
    this.source = source;
    this.#onClosed = onClosed;
  }

  /** Null while it changes to another result. */
  get result(): LiveQueryResult | null {
    return this.#result;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Continues from a version that the client has, or begins with a snapshot. */
  continueFrom(version: ResultVersion | null): void {
    this.#sent = version;
  }

  async next(milliseconds: number): Promise<LiveEvent | "idle" | null> {
    const end = performance.now() + milliseconds;
    while (!this.#isClosed) {
      if (this.#failure) throw this.#failure.error;
      const event = this.#takeEvent();
      if (event) return event;
      if (performance.now() >= end) return "idle";
      await this.#changed(end - performance.now());
    }
    return null;
  }

  join(result: LiveQueryResult): void {
    this.#result = result;
    result.join(this);
  }

  /** Leaves its result. `open` opens the query again and joins another one. */
  changeResult(open: () => Promise<void>): void {
    this.#result = null;
    this.#change = open();
  }

  async refresh(): Promise<ResultVersion | null> {
    for (let isRead = false; !isRead && !this.#isClosed; ) {
      const change = this.#change;
      await change;
      const result = this.#result;
      await result?.refresh();
      if (this.#failure) throw this.#failure.error;
      // A run may have found that definitions have changed.
      isRead = result !== null && this.#change === change;
    }
    return this.#result?.current ?? null;
  }

  wake(): void {
    this.#wake?.();
  }

  commit(xids: readonly number[]): void {
    this.source.onCommits?.(xids);
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.wake();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#result?.leave(this);
    this.#result = null;
    this.#onClosed(this);
    this.wake();
  }

  #takeEvent(): LiveEvent | null {
    const result = this.#result;
    if (!result || result.current === this.#sent) return null;
    const [from, to] = [this.#sent, result.current];
    this.#sent = to;
    to.receivers.add(this.source.caller.claimsText);
    const { position, text } = to;
    const { rows } = result;
    if (!from) return { kind: "snapshot", position, text, result: text, rows };
    if (from.text === text) return null;
    return {
      kind: "change",
      position,
      get text() {
        return result.patchBetween(from, to);
      },
      result: text,
      rows,
    };
  }

  async #changed(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, Math.max(1, milliseconds)).unref();
    await promise;
    clearTimeout(timer);
    this.#wake = null;
  }
}
