import type { Lsn } from "#postgres/database";
import { keyOf, type RowsByKey, readRows } from "../queries/table-rows.ts";

/**
 * Names a state of a log: the LSN of a commit, and the number of the log. So a position that was counted in a killed process is never mistaken
 * for a state of another one.
 */
export type ShapePosition = bigint;

const NUMBER_BITS = 32n;
export const LOG_NUMBERS = 2 ** Number(NUMBER_BITS);

/** The values of a row, as texts of Postgres. */
export type ShapeRow = readonly (string | null)[];

/** A row before and after a commit; null where the shape does not have it. */
export type ShapeChange = {
  readonly position: ShapePosition;
  /** The transactions, some of which have made the change. */
  readonly xids: readonly number[];
  readonly before: ShapeRow | null;
  readonly after: ShapeRow | null;
  /** True if the client may never have read more than the key of the row before. */
  readonly isKeyOnly?: boolean;
};

/** A state that a client has, as it was read from a file. */
export type SavedState = {
  readonly position: ShapePosition;
  readonly rows: ReadonlyMap<string, ShapeRow>;
  /** The rows that later changes wrote or deleted: a client that has read subsets may have them as of any of these changes. */
  readonly touched: ReadonlyMap<string, ShapeRow>;
  /** The transactions of these changes. */
  readonly xids: readonly number[];
  /** False: another token of the account has read the rows. */
  readonly isOwn: boolean;
};

/** Receives each state of a log, in order. */
type StateWriter = {
  begin(position: ShapePosition, rows: Iterable<ShapeRow>): void;
  /** `rows`: the rows of the state after the changes. */
  append(state: WrittenState, rows: Iterable<ShapeRow>): void;
};

/** A state, with its changes; `xids`: the transactions, some of which have made the changes. */
export type WrittenState = {
  readonly position: ShapePosition;
  readonly changes: readonly ShapeChange[];
  readonly xids: readonly number[];
};

/** The last snapshot whose transactions a state has. */
type IncludedSnapshot = {
  readonly text: string;
  readonly position: ShapePosition;
  /** The time by `Date.now()` until which clients may return that have the state and do not know its transactions. */
  readonly returnUntil: number;
};

type ChangeBatch = {
  readonly position: ShapePosition;
  readonly changes: readonly ShapeChange[];
  readonly bytes: number;
};

/** A client of changes alone may also have read subsets, from later states than its own. */
export type ContinuingClient = "of all rows" | "of changes";

/** The changes from a state of another log, which has the position `from` here, to a state of this one. */
type Continuation = ChangeBatch & { readonly from: ShapePosition };

const MAX_CHANGE_BYTES = 2 ** 20;
const BATCH_BYTES = 64;
/** The limit of the transaction numbers in the changes of one state. */
const MAX_XIDS_OF_CHANGES = 10_000;
/** The number of other transactions that are kept, the newest ones. */
const MAX_OTHER_XIDS = 1_000;
const XID_BYTES = 16;
const RETURN_MS = 60_000;
const MAX_CONTINUATIONS = 16;

/** The rows of a shape and their history: each position is a state that a commit has made. */
export class ShapeLog {
  readonly number: number;
  readonly #writer: StateWriter | null;
  readonly #keyPlaces: readonly number[];
  #text = "[]";
  #rows: RowsByKey = new Map();
  #batches: ChangeBatch[] = [];
  #changeBytes = 0;
  /** Transactions that no change names, and the state that has them. */
  #otherXids: { readonly position: ShapePosition; readonly xid: number }[] = [];
  /** The number of such transactions since the start. */
  otherXidCount = 0;
  /** The newest transactions that the present state has. */
  #recentXids: number[] = [];
  #snapshot: IncludedSnapshot | null = null;
  /** The first position since which changes are known; null before the first state. */
  #since: ShapePosition | null = null;
  /** The continuations by the position in the other log and the kind of client, the oldest first. */
  readonly #continuations = new Map<string, Continuation>();
  position: ShapePosition = 0n;

  constructor(keyPlaces: readonly number[], number: number, writer: StateWriter | null) {
    this.#keyPlaces = keyPlaces;
    this.number = number;
    this.#writer = writer;
  }

  get rows(): Iterable<ShapeRow> {
    return this.#rows.values();
  }

  get bytes(): number {
    const continued = this.#continuations.values().reduce((sum, { bytes }) => sum + bytes, 0);
    const xids = this.#otherXids.length + this.#recentXids.length;
    return this.#text.length + this.#changeBytes + continued + xids * XID_BYTES;
  }

  get recentXids(): readonly number[] {
    return this.#recentXids.slice(-MAX_OTHER_XIDS);
  }

  get snapshot(): string | null {
    return this.#snapshot?.text ?? null;
  }

  /**
   * Takes the state as of a commit: all rows, as the shape's statement returns them. `xids`: the commits since the state before.
   * `rows`: the rows of the text, if they are known.
   */
  accept(text: string, lsn: Lsn, xids: readonly number[], rows: RowsByKey | null = null): void {
    if (this.#since !== null && text === this.#text) {
      this.acceptUnchanged(xids);
      return;
    }
    this.#keepRecent(xids);
    const position = this.#nextPosition(lsn);
    const before = this.#rows;
    this.#text = text;
    this.#rows = rows ?? readRows(text, this.#keyPlaces);
    if (this.#since !== null) {
      this.#appendState(compareRows(before, this.#rows, position), position, xids);
      return;
    }
    this.#since = position;
    this.position = position;
    this.#writer?.begin(position, this.rows);
  }

  /** Adds these transactions to the state without a new state: nobody has to be told at once. */
  acceptUnchanged(xids: readonly number[]): void {
    if (xids.length === 0 || this.#since === null) return;
    this.#keepRecent(xids);
    this.#keepOthers(xids, this.position);
  }

  /** Adds the transactions of the snapshot to the state. No change names those that were committed while the query was closed. */
  acceptSnapshot(text: string): void {
    // Clients read the first state with its snapshot.
    const returnUntil = this.#snapshot ? Date.now() + RETURN_MS : 0;
    this.#snapshot = { text, position: this.position, returnUntil };
  }

  /** The snapshot for a client that continues from this position; null if the client knows its transactions. */
  snapshotSince(position: ShapePosition): string | null {
    if (!this.#snapshot || position > this.#snapshot.position) return null;
    const isKnown = position === this.#snapshot.position && Date.now() > this.#snapshot.returnUntil;
    return isKnown ? null : this.#snapshot.text;
  }

  /**
   * Repeats the differences from an earlier state, which the log may never have had, for clients that have its rows. No client skips such a change
   * for a transaction that the client has, because the change names none.
   */
  reconcile(text: string): void {
    if (text === this.#text) return;
    const position = this.#nextPosition();
    this.#append(compareRows(readRows(text, this.#keyPlaces), this.#rows, position).flatMap(toRepetition), position);
  }

  has(position: ShapePosition): boolean {
    return this.changesSince(position) !== null;
  }

  /** Null if the log does not have this state any more. */
  changesSince(position: ShapePosition): ShapeChange[] | null {
    if (position === this.position) return [];
    const continued = this.#continuations.values().find(({ from }) => from === position);
    if (continued) {
      const later = this.changesSince(continued.position);
      return later && [...continued.changes, ...later];
    }
    const at = this.#batches.findLastIndex((batch) => batch.position <= position);
    if (position !== this.#since && this.#batches[at]?.position !== position) return null;
    return this.#batches.slice(at + 1).flatMap(({ changes }) => changes);
  }

  /** The position here of a state of another log that clients continue from; null if it does not exist, or no longer. */
  positionOf(foreign: ShapePosition, client: ContinuingClient): ShapePosition | null {
    const continued = this.#continuations.get(`${foreign} ${client}`);
    return continued && this.has(continued.from) ? continued.from : null;
  }

  /** Returns the position from which a client with a state of another log continues. */
  continueFrom(saved: SavedState, client: ContinuingClient): ShapePosition {
    const from = this.#nextPosition(lsnOf(saved.position));
    this.position = from;
    const position = this.#nextPosition();
    const touched = client === "of changes" ? saved.touched : new Map();
    const changes = compareSaved({ ...saved, touched }, this.#rows, { position, keyPlaces: this.#keyPlaces });
    this.#continuations.set(`${saved.position} ${client}`, { from, position, changes, bytes: sizeOfChanges(changes) });
    this.#append([], position);
    this.#keepOthers([...saved.xids, ...this.recentXids], position);
    if (this.#snapshot) this.#snapshot = { ...this.#snapshot, position };
    if (this.#continuations.size > MAX_CONTINUATIONS) {
      const [oldest] = this.#continuations.keys();
      this.#continuations.delete(oldest!);
    }
    return from;
  }

  /** The transactions that no change since the position names. A state gains more of them after it was read. `known`: the reader's count before. */
  otherXidsSince(position: ShapePosition, known = 0): number[] {
    const count = this.otherXidCount - known;
    const added = count === 0 ? [] : this.#otherXids.slice(-count);
    return added.filter((each) => each.position >= position).map(({ xid }) => xid);
  }

  #appendState(changes: readonly ShapeChange[], position: ShapePosition, xids: readonly number[]): void {
    const areFew = changes.length > 0 && changes.length * xids.length <= MAX_XIDS_OF_CHANGES;
    this.#append(areFew ? changes.map((change) => ({ ...change, xids })) : changes, position, xids);
    if (!areFew) this.#keepOthers(xids, position);
  }

  #keepOthers(xids: readonly number[], position: ShapePosition): void {
    for (const xid of xids) this.#otherXids.push({ position, xid });
    this.#otherXids = newestOf(this.#otherXids);
    this.otherXidCount += xids.length;
  }

  #keepRecent(xids: readonly number[]): void {
    for (const xid of xids) this.#recentXids.push(xid);
    this.#recentXids = newestOf(this.#recentXids);
  }

  #append(changes: readonly ShapeChange[], position: ShapePosition, xids: readonly number[] = []): void {
    const bytes = sizeOfChanges(changes);
    this.position = position;
    this.#batches.push({ position, changes, bytes });
    this.#writer?.append({ position, changes, xids }, this.rows);
    this.#changeBytes += bytes;
    while (this.#changeBytes > MAX_CHANGE_BYTES && this.#batches.length > 1) {
      const oldest = this.#batches.shift()!;
      this.#changeBytes -= oldest.bytes;
      this.#since = oldest.position;
    }
  }

  /** Positions grow with each state. */
  #nextPosition(lsn: Lsn = 0n): ShapePosition {
    const last = lsnOf(this.position);
    return ((lsn > last ? lsn : last + 1n) << NUMBER_BITS) | BigInt(this.number);
  }
}

/** Drops the oldest items once there are twice as many as are kept. */
function newestOf<Item>(items: Item[]): Item[] {
  return items.length > 2 * MAX_OTHER_XIDS ? items.slice(-MAX_OTHER_XIDS) : items;
}

/** The number of the log that has the state. */
export function logNumberOf(position: ShapePosition): number {
  return Number(BigInt.asUintN(Number(NUMBER_BITS), position));
}

function lsnOf(position: ShapePosition): Lsn {
  return position >> NUMBER_BITS;
}

function sizeOfChanges(changes: readonly ShapeChange[]): number {
  return changes.reduce((sum, { before, after }) => sum + sizeOf(before) + sizeOf(after), BATCH_BYTES);
}

function sizeOf(row: ShapeRow | null): number {
  return row?.reduce((sum, text) => sum + (text?.length ?? 0) + 8, 0) ?? 0;
}

/** Other clients have the row already: for them the change first deletes it. */
function toRepetition(change: ShapeChange): ShapeChange[] {
  return change.before === null ? [{ ...change, before: change.after, after: null }, change] : [change];
}

/** Lists deletions first: a unique value may move from one row to another. */
function compareRows(
  before: ReadonlyMap<string, ShapeRow>,
  after: ReadonlyMap<string, ShapeRow>,
  position: ShapePosition,
): ShapeChange[] {
  const deleted = [...before]
    .filter(([key]) => !after.has(key))
    .map(([, row]) => ({ position, xids: [], before: row, after: null }));
  const written = [...after].flatMap(([key, row]) => {
    const old = before.get(key) ?? null;
    return old === row || old?.every((text, place) => text === row[place])
      ? []
      : [{ position, xids: [], before: old, after: row }];
  });
  return [...deleted, ...written];
}

/**
 * The changes from the client's rows to the present rows. The client may have read a touched row with a subset, as of any change since,
 * so such a row is sent whole. Only present rows are sent.
 */
function compareSaved(
  { rows, touched, isOwn }: SavedState,
  after: ReadonlyMap<string, ShapeRow>,
  { position, keyPlaces }: { readonly position: ShapePosition; readonly keyPlaces: readonly number[] },
): ShapeChange[] {
  const change = { position, xids: [], before: null, after: null };
  const unknown = [...touched].flatMap(([key, row]) =>
    rows.has(key) || after.has(key) ? [] : [{ ...change, before: row, isKeyOnly: true }],
  );
  const changes = compareRows(rows, after, position)
    .filter((each) => each.after === null || !touched.has(keyOf(keyPlaces, each.after)))
    .map((each) => ({ ...each, isKeyOnly: !isOwn }));
  const whole = [...touched.keys()].flatMap((key) => {
    const row = after.get(key);
    return row ? toRepetition({ ...change, after: row }) : [];
  });
  return [...unknown, ...changes, ...whole];
}
