import type { ShapeChange, ShapeDefinition, ShapePosition, ShapeRow } from "#live";

type Values = Readonly<Record<string, string | null>>;

/** A message of a shape's log, as Electric's clients read it. */
export type ShapeMessage =
  | { readonly key: string; readonly value: Values; readonly old_value?: Values; readonly headers: object }
  | { readonly headers: object };

export const MUST_REFETCH: ShapeMessage = { headers: { control: "must-refetch" } };

/** Makes the message; `xids` are transactions that no message before it names. */
export function upToDate(position: ShapePosition, xids: readonly number[] = []): ShapeMessage {
  return { headers: { control: "up-to-date", global_last_seen_lsn: String(position), ...txidsHeader(xids) } };
}

const XID_LIMIT = 2n ** 32n;

/**
 * Makes the snapshot's message: the rows contain commits before the snapshot, as `pg_current_snapshot()` returns it. No message if the
 * numbers of transactions begin anew.
 */
export function snapshotEnd(snapshot: string | null): ShapeMessage[] {
  if (snapshot === null) return [];
  const [xmin, xmax, ...running] = snapshot.split(/[:,]/).filter(Boolean).map(toTransactionNumber);
  if (BigInt(xmin!) > BigInt(xmax!)) return [];
  return [{ headers: { control: "snapshot-end", xmin, xmax, xip_list: running } }];
}

/** Converts a transaction id to a number without the epoch, as in `txids`. */
function toTransactionNumber(xid: string): string {
  return String(BigInt(xid) % XID_LIMIT);
}

function txidsHeader(xids: readonly number[]) {
  return xids.length === 0 ? {} : { txids: xids };
}

export function toOffset(position: ShapePosition): string {
  return `${position}_0`;
}

/** Writes rows and changes as messages. With `isFull`, changes have the whole row, and updates the old values. */
export class MessageWriter {
  readonly #definition: ShapeDefinition;
  readonly #isFull: boolean;
  readonly #relation: readonly string[];

  constructor(definition: ShapeDefinition, isFull: boolean) {
    this.#definition = definition;
    this.#isFull = isFull;
    this.#relation = [definition.table.schema, definition.table.name];
  }

  row(row: ShapeRow): ShapeMessage {
    return { key: this.#keyOf(row), value: this.#valuesOf(row), headers: this.#headers("insert") };
  }

  changes(changes: readonly ShapeChange[]): ShapeMessage[] {
    return changes.map((change, index) => this.#change(change, index));
  }

  #change({ position, xids, before, after, isKeyOnly = false }: ShapeChange, index: number): ShapeMessage {
    const at = { lsn: String(position), op_position: index, ...txidsHeader(xids) };
    if (after === null) {
      const value = this.#valuesOf(before!, this.#isFull && !isKeyOnly ? null : () => false);
      return { key: this.#keyOf(before!), value, headers: { ...this.#headers("delete"), ...at } };
    }
    const key = this.#keyOf(after);
    if (before === null) return { key, value: this.#valuesOf(after), headers: { ...this.#headers("insert"), ...at } };
    const hasChanged = (place: number) => before[place] !== after[place];
    const value = this.#valuesOf(after, this.#isFull ? null : hasChanged);
    const headers = { ...this.#headers("update"), ...at };
    return this.#isFull && !isKeyOnly
      ? { key, value, old_value: this.#valuesOf(before, hasChanged, false), headers }
      : { key, value, headers };
  }

  #headers(operation: "insert" | "update" | "delete") {
    return { operation, relation: this.#relation };
  }

  /** Returns the values of the chosen places, or of all for null; always with the key, unless `hasKey` is false. */
  #valuesOf(row: ShapeRow, isChosen: ((place: number) => boolean) | null = null, hasKey = true): Values {
    const { columns, keyPlaces } = this.#definition;
    const isMeant = (place: number) => isChosen === null || isChosen(place) || (hasKey && keyPlaces.includes(place));
    return Object.fromEntries(
      columns.flatMap(({ name }, place) => (isMeant(place) ? [[name, row[place] ?? null] as const] : [])),
    );
  }

  /** Returns the key of a row: `"schema"."table"/"1"`. */
  #keyOf(row: ShapeRow): string {
    const names = this.#relation.map((name) => `"${name.replaceAll('"', '""')}"`).join(".");
    const values = this.#definition.keyPlaces.map((place) => `"${(row[place] ?? "").replaceAll("/", "//")}"`);
    return [names, ...values].join("/");
  }
}
