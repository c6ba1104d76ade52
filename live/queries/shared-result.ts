import type { Lsn } from "#postgres/database";
import { parseJsonExactly } from "#runtime/json";
import type { QueryDependencies } from "../dependencies/query-dependencies.ts";
import { type ChangeFilter, countKeys, type ResultContents } from "./affected-rows.ts";
import { makeJsonPatch } from "./json-patch.ts";
import { LIVE_LIMITS } from "./live-limits.ts";
import { type CommittedChange, changeRows, type RowsByKey, type TableRows } from "./table-rows.ts";

/** The result of a query as of a commit. */
export type ResultVersion = {
  /** All commits up to this one are in the result. */
  readonly position: Lsn;
  /** JSON. */
  readonly text: string;
  /** The clients that have received it, by the text of their claims. */
  readonly receivers: Set<string>;
};

/** How many versions clients that reconnect can continue from. */
const MAX_VERSIONS = 8;
const MAX_NEW_XIDS = 1_000;
const MAX_VERSION_BYTES = 4 * 2 ** 20;
/** The bytes of a key in a set and in an index. */
const KEY_BYTES = 128;

/** The transactions that have affected a result, in lists that several results share. */
export type AffectingXids = readonly (readonly number[])[];

/** A reader of a result. */
type ResultReader = { wake(): void; commit(xids: readonly number[]): void };

export type ResultDefinition = {
  readonly dependencies: QueryDependencies;
  readonly filters: readonly ChangeFilter[];
  /** The texts of the statements whose dependencies these are. */
  readonly statements: readonly string[];
  /** Null if only runs change it. */
  readonly tableRows: TableRows | null;
  /** The transactions that ran when it was opened: it may lack changes of them. */
  readonly running: ReadonlySet<number>;
};

/** `rowsSnapshot`: the snapshot of the run; null unless the log of changes has the same texts. */
export type RowsRun = { readonly rowsSnapshot?: string | null };

/** The time for which rows are changed without a run. Grants of roles are not in the stream: they take effect with the next run. */
const MAX_WITHOUT_RUN_MS = 5_000;

/** One query for one audience: its result, which all subscribers of the audience share. */
export class SharedResult<Reader extends ResultReader> {
  readonly key: string;
  readonly subscribers = new Set<Reader>();
  readonly dependencies: QueryDependencies;
  readonly filters: readonly ChangeFilter[];
  readonly statements: ReadonlySet<string>;
  readonly tableRows: TableRows | null;
  readonly running: Set<number>;
  /** Null while a run is in progress, whose contents may differ. */
  contents: ResultContents | null = null;
  /** The last commit that may have changed the result. */
  markedAt: Lsn = 0n;
  /** True if a commit is not in the result yet. */
  isStale = false;
  /** True if definitions have changed since the dependencies were read. */
  isOutdated = false;
  /** The run that waits or is in progress; `hasBegun`: it is in progress; `refreshingNext`: the run after it. */
  refreshing: Promise<void> | null = null;
  hasBegun = false;
  refreshingNext: Promise<void> | null = null;
  expiry: NodeJS.Timeout | undefined;
  /** The result's part of the bytes of all results. */
  countedBytes = 0;
  #lastRun: { readonly snapshot: string | null; readonly startedAt: number } = { snapshot: null, startedAt: 0 };
  /** The rows of the current version, if they were read. */
  #rows: RowsByKey | null = null;
  #versions: ResultVersion[] = [];
  #newXids: AffectingXids[number][] = [];
  #newXidCount = 0;
  readonly #patches = new WeakMap<ResultVersion, WeakMap<ResultVersion, string>>();

  constructor(key: string, { dependencies, filters, statements, tableRows, running }: ResultDefinition) {
    this.key = key;
    this.dependencies = dependencies;
    this.filters = filters;
    this.statements = new Set(statements);
    this.tableRows = tableRows;
    this.running = new Set(running);
  }

  get current(): ResultVersion {
    return this.#versions.at(-1)!;
  }

  get rows(): RowsByKey | null {
    return this.#rows;
  }

  /** The bytes of the result and of the keys of its rows, by which changes are judged. */
  get bytes(): number {
    return this.#textBytes + countKeys(this.contents) * KEY_BYTES;
  }

  get #textBytes(): number {
    return this.#versions.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** Adds a version. Positions grow with each version, so that each names one. */
  accept(text: string, position: Lsn): boolean {
    const current = this.#versions.at(-1);
    if (current?.text === text) return false;
    const least = current ? current.position + 1n : 0n;
    this.#versions.push({ position: position > least ? position : least, text, receivers: new Set() });
    while (this.#versions.length > MAX_VERSIONS || (this.#versions.length > 1 && this.#textBytes > MAX_VERSION_BYTES))
      this.#versions.shift();
    for (const subscriber of this.subscribers) subscriber.wake();
    return true;
  }

  /** Call with each run. `startedAt`: its start, from `performance.now()`. */
  acceptRun(run: RowsRun & { readonly text: string }, position: Lsn, startedAt: number): void {
    this.#lastRun = { snapshot: run.rowsSnapshot ?? null, startedAt };
    this.#rows = null;
    this.accept(run.text, position);
  }

  /** Applies row changes that the last run does not have, if no run is needed for that. */
  acceptChanges(changes: readonly CommittedChange[], position: Lsn): boolean {
    const { snapshot, startedAt } = this.#lastRun;
    const isBehind = this.isStale || this.isOutdated || this.refreshing !== null || this.running.size > 0;
    const isRunDue = performance.now() - startedAt > MAX_WITHOUT_RUN_MS;
    if (!this.tableRows || snapshot === null || isBehind || isRunDue) return false;
    const { text } = this.current;
    const changed = changeRows({ text, rows: this.#rows }, changes, { rows: this.tableRows, snapshot });
    if (!changed || changed.text.length > LIVE_LIMITS.resultBytes) return false;
    this.#rows = changed.rows;
    this.accept(changed.text, position);
    return true;
  }

  /** Adds transactions, which subscribers learn of with the next run; if there are very many, only of the newest. */
  addXids(xids: AffectingXids): void {
    for (const each of xids) {
      this.#newXids.push(each);
      this.#newXidCount += each.length;
    }
    while (this.#newXidCount - (this.#newXids[0]?.length ?? 0) >= MAX_NEW_XIDS)
      this.#newXidCount -= this.#newXids.shift()!.length;
  }

  /** The transactions that a run which begins now includes, and that subscribers do not know of yet. */
  takeXids(): number[] {
    const xids = new Set(this.#newXids.flatMap((each) => each.slice(-MAX_NEW_XIDS)));
    this.#newXids = [];
    this.#newXidCount = 0;
    return [...xids];
  }

  /** These transactions are in the result now, whether they have changed it or not. */
  commit(xids: readonly number[]): void {
    if (xids.length > 0) for (const subscriber of this.subscribers) subscriber.commit(xids);
  }

  /** The version that a client with these claims received. */
  versionOf(position: Lsn, claimsText: string): ResultVersion | null {
    return this.#versions.find((each) => each.position === position && each.receivers.has(claimsText)) ?? null;
  }

  /** JSON Patch, written once for all subscribers. */
  patchBetween(from: ResultVersion, to: ResultVersion): string {
    const patches = this.#patches.get(to) ?? new WeakMap<ResultVersion, string>();
    this.#patches.set(to, patches);
    const known = patches.get(from);
    if (known !== undefined) return known;
    const patch = JSON.stringify(makeJsonPatch(parseJsonExactly(from.text), parseJsonExactly(to.text)));
    patches.set(from, patch);
    return patch;
  }
}
