import type { Lsn } from "#postgres/database";
import { parseJsonExactly } from "#runtime/json";
import type { QueryDependencies } from "../dependencies/query-dependencies.ts";
import type { AffectingXids } from "../matching/affected-results.ts";
import { type ChangeFilter, countKeys, type ResultContents } from "../matching/affected-rows.ts";
import type { CommittedChange } from "../stream/changes.ts";
import { makeJsonPatch } from "./json-patch.ts";
import { LIVE_LIMITS } from "./live-limits.ts";
import { isRunComing, nextState, type ResultAction, type ResultEvent, type ResultState } from "./result-states.ts";
import { changeRows, type RowsByKey, type TableRows } from "./table-rows.ts";

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

/** Commits of the stream that may change a result. `changes`: their changes of rows; null if only a run can tell. `position`: the last one. */
type DeliveredCommits = {
  readonly xids: AffectingXids;
  readonly changes: readonly CommittedChange[] | null;
  readonly position: Lsn;
};

/** A reader of a result. */
type ResultReader = { wake(): void; commit(xids: readonly number[]): void };

type ResultDefinition = {
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

type FinishedRun = RowsRun & { readonly text: string; readonly contents: ResultContents | null };

/** The result of a run, or its error. */
export type RunOutcome = { readonly run?: FinishedRun; readonly error?: unknown };

/** `position`: the last commit that it includes. `startedAt`: its start, from `performance.now()`. */
type RunStart = { readonly position: Lsn; readonly startedAt: number };

type RunInProgress = RunStart & {
  readonly xids: readonly number[];
  /** Let the readers go on that wait for the run. */
  readonly waiting: readonly (() => void)[];
};

export type ResultActions<Result> = Readonly<
  Record<ResultAction, (result: Result, outcome: RunOutcome) => Promise<void> | void>
>;

/** The time for which rows are changed without a run. Grants of roles are not in the stream: they take effect with the next run. */
const MAX_WITHOUT_RUN_MS = 5_000;

/** One query for one audience: its result, which all readers of the audience share. `result-states.ts` says what happens to it. */
export class SharedResult<Reader extends ResultReader> {
  readonly key: string;
  readonly dependencies: QueryDependencies;
  readonly filters: readonly ChangeFilter[];
  readonly statements: ReadonlySet<string>;
  readonly tableRows: TableRows | null;
  readonly #actions: ResultActions<SharedResult<Reader>>;
  readonly #readers = new Set<Reader>();
  /** The transactions that ran when it was opened and that have not ended. */
  #running: ReadonlySet<number>;
  #state: ResultState = "current";
  /** The contents of the last run. */
  #contents: ResultContents | null;
  #areContentsForgotten = false;
  #run: RunInProgress | null = null;
  #failures = 0;
  /** Let the readers go on that wait for the next run. */
  #waiting: (() => void)[] = [];
  #expiry: NodeJS.Timeout | undefined;
  /** The last commit that may have changed the result. */
  #markedAt: Lsn = 0n;
  #lastRun: { readonly snapshot: string | null; readonly startedAt: number };
  /** The rows of the current version, if they were read. */
  #rows: RowsByKey | null = null;
  #versions: ResultVersion[] = [];
  #newXids: AffectingXids[number][] = [];
  #newXidCount = 0;
  readonly #patches = new WeakMap<ResultVersion, WeakMap<ResultVersion, string>>();

  constructor(
    key: string,
    { dependencies, filters, statements, tableRows, running }: ResultDefinition,
    first: FinishedRun & RunStart,
    actions: ResultActions<SharedResult<Reader>>,
  ) {
    this.key = key;
    this.dependencies = dependencies;
    this.filters = filters;
    this.statements = new Set(statements);
    this.tableRows = tableRows;
    this.#running = running;
    this.#actions = actions;
    this.#contents = first.contents;
    this.#lastRun = { snapshot: first.rowsSnapshot ?? null, startedAt: first.startedAt };
    this.#addVersion(first.text, first.position);
  }

  get state(): ResultState {
    return this.#state;
  }

  get readers(): ReadonlySet<Reader> {
    return this.#readers;
  }

  /** Null while a run is coming or in progress, whose contents may differ. */
  get contents(): ResultContents | null {
    return this.#areContentsForgotten ? null : this.#contents;
  }

  get lastContents(): ResultContents | null {
    return this.#contents;
  }

  get markedAt(): Lsn {
    return this.#markedAt;
  }

  get current(): ResultVersion {
    return this.#versions.at(-1)!;
  }

  get rows(): RowsByKey | null {
    return this.#rows;
  }

  /** The bytes of the result and of the keys of its rows, by which changes are judged. */
  get bytes(): number {
    return this.#textBytes + countKeys(this.#contents) * KEY_BYTES;
  }

  get #textBytes(): number {
    return this.#versions.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** Performs the actions of the event. Returns the promise of the one that takes time: the result then has a turn of the queue. */
  handle(event: ResultEvent, outcome: RunOutcome = {}): Promise<void> | void {
    const [next, ...actions] = nextState(this.#state, event);
    this.#state = next;
    const done = actions.map((action) => this.#actions[action](this, outcome));
    return done.find((each) => each !== undefined);
  }

  join(reader: Reader): void {
    this.#readers.add(reader);
    void this.handle("joined");
  }

  leave(reader: Reader): void {
    if (this.#readers.delete(reader) && this.#readers.size === 0) void this.handle("left");
  }

  /** Takes all readers away from a result that is closed. */
  takeReaders(): Reader[] {
    const readers = [...this.#readers];
    this.#readers.clear();
    return readers;
  }

  /** True if the current version is this text, and no run is due. */
  isCurrent(text: string): boolean {
    return this.#state === "current" && this.current.text === text;
  }

  /** True if the current version is of a run that began after that time, from `performance.now()`, and no run is due. */
  hasRunSince(time: number): boolean {
    return this.#state === "current" && this.#lastRun.startedAt >= time;
  }

  /** Resolves when a run that begins from now on has ended, or there will be none. */
  refresh(): Promise<void> {
    void this.handle("asked");
    if (!isRunComing(this.#state)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Delivers visible commits. Returns true if they have changed the rows, or nothing, without a run. */
  deliver({ xids, changes, position }: DeliveredCommits): boolean {
    if (position > this.#markedAt) this.#markedAt = position;
    if (this.#readers.size > 0) this.#addXids(xids);
    const isChanged = changes !== null && this.#changeRows(changes);
    if (isChanged) this.#notify(this.takeXids());
    else void this.handle("committed");
    return isChanged;
  }

  endTransactions(xids: ReadonlySet<number>): void {
    this.#running = this.#running.difference(xids);
  }

  forgetContents(): void {
    this.#areContentsForgotten = true;
  }

  beginRun(): RunInProgress {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#run = { position: this.#markedAt, startedAt: performance.now(), xids: this.takeXids(), waiting };
    return this.#run;
  }

  /** False if the run was given up, because all readers had left. */
  isInProgress(run: RunInProgress): boolean {
    return this.#run === run;
  }

  /** How often the run has failed, this time included. */
  countFailure(): number {
    return ++this.#failures;
  }

  /** `run`: of the run in progress. */
  acceptRun({ text, rowsSnapshot, contents }: FinishedRun): void {
    const { position, startedAt, xids, waiting } = this.#run!;
    this.#run = null;
    this.#failures = 0;
    this.#lastRun = { snapshot: rowsSnapshot ?? null, startedAt };
    this.#rows = null;
    this.#contents = contents;
    this.#areContentsForgotten = false;
    this.#addVersion(text, position);
    this.#notify(xids);
    for (const resume of waiting) resume();
  }

  putBackRun(): void {
    const { xids, waiting } = this.#run!;
    this.#run = null;
    this.#addXids([xids]);
    this.#waiting.unshift(...waiting);
  }

  release(): void {
    const waiting = [...(this.#run?.waiting ?? []), ...this.#waiting];
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  expireAfter(milliseconds: number): void {
    this.#failures = 0;
    this.#expiry = setTimeout(() => void this.handle("expired"), milliseconds).unref();
  }

  stopExpiry(): void {
    clearTimeout(this.#expiry);
  }

  /** The transactions that readers do not know of yet, and that a run has which begins now. */
  takeXids(): number[] {
    const xids = new Set(this.#newXids.flatMap((each) => each.slice(-MAX_NEW_XIDS)));
    this.#newXids = [];
    this.#newXidCount = 0;
    return [...xids];
  }

  /** Those of the run in progress, and new ones. */
  takeAllXids(): number[] {
    return [...(this.#run?.xids ?? []), ...this.takeXids()];
  }

  /** The version that a client with these claims received. */
  versionOf(position: Lsn, claimsText: string): ResultVersion | null {
    return this.#versions.find((each) => each.position === position && each.receivers.has(claimsText)) ?? null;
  }

  /** JSON Patch, written once for all readers. */
  patchBetween(from: ResultVersion, to: ResultVersion): string {
    const patches = this.#patches.get(to) ?? new WeakMap<ResultVersion, string>();
    this.#patches.set(to, patches);
    const known = patches.get(from);
    if (known !== undefined) return known;
    const patch = JSON.stringify(makeJsonPatch(parseJsonExactly(from.text), parseJsonExactly(to.text)));
    patches.set(from, patch);
    return patch;
  }

  /** Positions grow with each version, so that each names one. */
  #addVersion(text: string, position: Lsn): void {
    const current = this.#versions.at(-1);
    if (current?.text === text) return;
    const least = current ? current.position + 1n : 0n;
    this.#versions.push({ position: position > least ? position : least, text, receivers: new Set() });
    while (this.#versions.length > MAX_VERSIONS || (this.#versions.length > 1 && this.#textBytes > MAX_VERSION_BYTES))
      this.#versions.shift();
    for (const reader of this.#readers) reader.wake();
  }

  /** Applies row changes that the last run does not have, if no run is needed for that. */
  #changeRows(changes: readonly CommittedChange[]): boolean {
    const { snapshot, startedAt } = this.#lastRun;
    const isRunDue = performance.now() - startedAt > MAX_WITHOUT_RUN_MS;
    const mayChange = this.#state === "current" && this.#running.size === 0 && !isRunDue;
    if (!this.tableRows || snapshot === null || !mayChange) return false;
    const { text } = this.current;
    const changed = changeRows({ text, rows: this.#rows }, changes, { rows: this.tableRows, snapshot });
    if (!changed || changed.text.length > LIVE_LIMITS.resultBytes) return false;
    this.#rows = changed.rows;
    this.#addVersion(changed.text, this.#markedAt);
    return true;
  }

  /** Adds transactions, which readers learn of with the next run; if there are very many, only of the newest. */
  #addXids(xids: AffectingXids): void {
    for (const each of xids) {
      this.#newXids.push(each);
      this.#newXidCount += each.length;
    }
    while (this.#newXidCount - (this.#newXids[0]?.length ?? 0) >= MAX_NEW_XIDS)
      this.#newXidCount -= this.#newXids.shift()!.length;
  }

  /** These transactions are in the result now, whether they have changed it or not. */
  #notify(xids: readonly number[]): void {
    if (xids.length > 0) for (const reader of this.#readers) reader.commit(xids);
  }
}
