import type { Lsn } from "#postgres/database";

/** The values of a row, as texts of Postgres. */
export type ShapeRow = readonly (string | null)[];

/** A row before and after a commit; null where the shape does not have it. */
export type ShapeChange = {
  readonly position: Lsn;
  /** The transactions of which some have made it. */
  readonly xids: readonly number[];
  readonly before: ShapeRow | null;
  readonly after: ShapeRow | null;
};

type ChangeBatch = { readonly position: Lsn; readonly changes: readonly ShapeChange[]; readonly bytes: number };

const MAX_CHANGE_BYTES = 2 ** 20;
const BATCH_BYTES = 64;
/** Of a state, so many numbers of transactions are in its changes. */
const MAX_XIDS_OF_CHANGES = 10_000;
/** So many other transactions are kept, the newest ones. */
const MAX_OTHER_XIDS = 1_000;
const XID_BYTES = 16;

/** The rows of a shape, and how they became so: each position is a state that a commit has made. */
export class ShapeLog {
  readonly #keyPlaces: readonly number[];
  #text = "[]";
  #rows = new Map<string, ShapeRow>();
  #batches: ChangeBatch[] = [];
  #changeBytes = 0;
  /** Transactions that no change names, and the state that has them. */
  #otherXids: { readonly position: Lsn; readonly xid: number }[] = [];
  /** How many there ever were. */
  otherXidCount = 0;
  /** The first position that changes are known since; null before the first state. */
  #since: Lsn | null = null;
  position: Lsn = 0n;

  constructor(keyPlaces: readonly number[]) {
    this.#keyPlaces = keyPlaces;
  }

  get rows(): Iterable<ShapeRow> {
    return this.#rows.values();
  }

  get bytes(): number {
    return this.#text.length + this.#changeBytes + this.#otherXids.length * XID_BYTES;
  }

  /** Takes the state as of a commit: all rows, as the statement of the shape returns them. `xids`: what was committed since the one before. */
  accept(text: string, position: Lsn, xids: readonly number[]): void {
    const isFirst = this.#since === null;
    if (!isFirst && text === this.#text) {
      this.acceptUnchanged(xids);
      return;
    }
    const next = position > this.position ? position : this.position + 1n;
    const rows = this.#rowsOf(text);
    if (isFirst) this.#since = next;
    else this.#appendState(compareRows(this.#rows, rows, next), next, xids);
    this.#text = text;
    this.#rows = rows;
    this.position = next;
  }

  /** The state has these transactions too. It is no other one for them: nobody has to be told at once. */
  acceptUnchanged(xids: readonly number[]): void {
    if (xids.length > 0 && this.#since !== null) this.#keepOthers(xids, this.position);
  }

  /**
   * Repeats what differs from an earlier state, which the log may never have had, for clients that have its rows. No client leaves such a change
   * out for a transaction that it has, because it names none.
   */
  reconcile(text: string): void {
    if (text === this.#text) return;
    const next = this.position + 1n;
    this.#append(compareRows(this.#rowsOf(text), this.#rows, next).flatMap(toRepetition), next);
    this.position = next;
  }

  /** Null if the log does not go back to this position. */
  changesSince(position: Lsn): ShapeChange[] | null {
    if (this.#since === null || position < this.#since || position > this.position) return null;
    return this.#batches.filter((batch) => batch.position > position).flatMap(({ changes }) => changes);
  }

  /** What no change since the position names. A state gets more of them after it was read. `known`: how many there were for this reader before. */
  otherXidsSince(position: Lsn, known = 0): number[] {
    const count = this.otherXidCount - known;
    const added = count === 0 ? [] : this.#otherXids.slice(-count);
    return added.filter((each) => each.position >= position).map(({ xid }) => xid);
  }

  #appendState(changes: readonly ShapeChange[], position: Lsn, xids: readonly number[]): void {
    const areFew = changes.length > 0 && changes.length * xids.length <= MAX_XIDS_OF_CHANGES;
    this.#append(areFew ? changes.map((change) => ({ ...change, xids })) : changes, position);
    if (!areFew) this.#keepOthers(xids, position);
  }

  #keepOthers(xids: readonly number[], position: Lsn): void {
    this.#otherXids = [...this.#otherXids, ...xids.map((xid) => ({ position, xid }))].slice(-MAX_OTHER_XIDS);
    this.otherXidCount += xids.length;
  }

  #append(changes: readonly ShapeChange[], position: Lsn): void {
    const bytes = changes.reduce((sum, { before, after }) => sum + sizeOf(before) + sizeOf(after), BATCH_BYTES);
    this.#batches.push({ position, changes, bytes });
    this.#changeBytes += bytes;
    while (this.#changeBytes > MAX_CHANGE_BYTES && this.#batches.length > 1) {
      const oldest = this.#batches.shift()!;
      this.#changeBytes -= oldest.bytes;
      this.#since = oldest.position;
    }
  }

  #rowsOf(text: string): Map<string, ShapeRow> {
    return new Map((JSON.parse(text) as ShapeRow[]).map((row) => [this.#keyOf(row), row]));
  }

  #keyOf(row: ShapeRow): string {
    return JSON.stringify(this.#keyPlaces.map((place) => row[place]));
  }
}

function sizeOf(row: ShapeRow | null): number {
  return row?.reduce((sum, text) => sum + (text?.length ?? 0) + 8, 0) ?? 0;
}

/** Other clients have the row already: for them it is first deleted. */
function toRepetition(change: ShapeChange): ShapeChange[] {
  return change.before === null ? [{ ...change, before: change.after, after: null }, change] : [change];
}

/** Deletions first: a unique value may move from one row to another. */
function compareRows(
  before: ReadonlyMap<string, ShapeRow>,
  after: ReadonlyMap<string, ShapeRow>,
  position: Lsn,
): ShapeChange[] {
  const deleted = [...before]
    .filter(([key]) => !after.has(key))
    .map(([, row]) => ({ position, xids: [], before: row, after: null }));
  const written = [...after].flatMap(([key, row]) => {
    const old = before.get(key) ?? null;
    return old?.every((text, place) => text === row[place]) ? [] : [{ position, xids: [], before: old, after: row }];
  });
  return [...deleted, ...written];
}
