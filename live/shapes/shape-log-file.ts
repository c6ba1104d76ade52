import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { LiveSource } from "../queries/live-subscriber.ts";
import { keyOf } from "../queries/table-rows.ts";
import type { ShapeDefinition } from "./shape-definition.ts";
import type { SavedState, ShapePosition, ShapeRow, WrittenState } from "./shape-log.ts";
import type { ShapeLogFolder } from "./shape-log-folder.ts";

/** The owner as hashes: a file names no claims and no values of conditions. */
type ShapeOwner = {
  readonly identity: string;
  readonly audience: string;
  /** The account whose other tokens may continue; null if there is no account. */
  readonly account: string | null;
};

/** The first line of a segment. */
type StateRecord = ShapeOwner & { readonly at: string; readonly rows: readonly ShapeRow[] };
/** A line after the first. Deleted rows come first. */
type ChangeRecord = {
  readonly at: string;
  readonly deleted: readonly ShapeRow[];
  readonly written: readonly ShapeRow[];
  /** Absent in files of earlier versions. */
  readonly xids?: readonly number[];
};
type Segment = { readonly state: StateRecord; readonly changes: readonly ChangeRecord[] };

/** The size of the changes of a segment, unless its rows take more. */
const SEGMENT_BYTES = 2 ** 20;
/** The limit of the text that waits to be written; the file is given up if the disk does not take it. */
const MAX_WAITING_BYTES = 4 * SEGMENT_BYTES;
/** The limit of transactions of a change. */
const MAX_XIDS = 1_000;
const TOUCH_MS = 10 * 60_000;
/** A segment replaces the one before the last. */
const SLOTS = [0, 1] as const;
const CHECKSUM_LENGTH = 8;

type QueuedText = { readonly slot: number; readonly isFirst: boolean; text: string };

/**
 * The saved part of a log, which outlives its process: two segments, each with a state and the changes that follow it, a line per state with a
 * checksum. One process writes a file; others may read it at any time.
 */
export class ShapeLogFile {
  readonly #folder: ShapeLogFolder;
  readonly #number: number;
  #owner: ShapeOwner;
  #segment = -1;
  #segmentBytes = 0;
  #segmentLimit = SEGMENT_BYTES;
  #queue: QueuedText[] = [];
  #waitingBytes = 0;
  #isScheduled = false;
  #isLost = false;
  #touchedAt = Date.now();
  #written: Promise<void> = Promise.resolve();

  constructor(folder: ShapeLogFolder, number: number, owner: ShapeOwner) {
    this.#folder = folder;
    this.#number = number;
    this.#owner = owner;
  }

  /** Begins a segment with this state. */
  begin(position: ShapePosition, rows: Iterable<ShapeRow>): void {
    const text = toLine({ ...this.#owner, at: String(position), rows: [...rows] });
    this.#segment++;
    this.#segmentBytes = 0;
    this.#segmentLimit = Math.max(SEGMENT_BYTES, text.length);
    this.#write(text, true);
  }

  append({ position, changes, xids }: WrittenState, rows: Iterable<ShapeRow>): void {
    const deleted = changes.flatMap(({ before, after }) => (after === null && before ? [before] : []));
    const written = changes.flatMap(({ after }) => (after ? [after] : []));
    const text = toLine({ at: String(position), deleted, written, xids: xids.slice(-MAX_XIDS) });
    this.#segmentBytes += text.length;
    this.#write(text, false);
    if (this.#segmentBytes > this.#segmentLimit) this.begin(position, rows);
  }

  /** From this state on, the file is the log of another token of the account. */
  changeOwner(owner: ShapeOwner, position: ShapePosition, rows: Iterable<ShapeRow>): void {
    this.#owner = owner;
    this.begin(position, rows);
  }

  /** Resolves when everything so far is in the file, so that it outlives the process. */
  saved(): Promise<void> {
    return this.#written;
  }

  /** Resolves when everything so far outlives a crash of the machine, too. */
  async synced(): Promise<void> {
    await this.#written;
    if (!this.#isLost) await Promise.all(SLOTS.map((slot) => this.#folder.sync(nameOf(this.#number, slot))));
  }

  /** Marks the files as used: unused files are deleted. */
  touch(): void {
    if (this.#isLost || Date.now() - this.#touchedAt < TOUCH_MS) return;
    this.#touchedAt = Date.now();
    for (const slot of SLOTS) void this.#folder.touch(nameOf(this.#number, slot));
  }

  async remove(): Promise<void> {
    this.#isLost = true;
    await this.#written;
    await Promise.all(SLOTS.map((slot) => this.#folder.remove(nameOf(this.#number, slot))));
  }

  #write(text: string, isFirst: boolean): void {
    if (this.#isLost) return;
    const slot = this.#segment % SLOTS.length;
    const last = this.#queue.at(-1);
    if (last?.slot === slot && !isFirst) last.text += text;
    else this.#queue.push({ slot, isFirst, text });
    this.#waitingBytes += text.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) return void this.remove();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#written = this.#written.then(() => this.#writeQueue());
  }

  async #writeQueue(): Promise<void> {
    this.#isScheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    this.#waitingBytes = 0;
    for (const { slot, isFirst, text } of queue) {
      if (this.#isLost) return;
      const isWritten = await this.#folder.write(nameOf(this.#number, slot), text, isFirst);
      // If the text is missing, the file has a gap.
      if (!isWritten && !this.#isLost) void this.remove();
    }
  }
}

export function ownerOf({ identity }: ShapeDefinition, { caller, quotaKey }: LiveSource): ShapeOwner {
  const { role, claimsText, claims } = caller;
  return {
    identity: hashOf(identity),
    audience: hashOf(role, claimsText),
    account: typeof claims.sub === "string" ? hashOf(role, claims.sub, quotaKey) : null,
  };
}

/** Returns null if the files do not have this state, or have it for another owner. */
export async function readSavedState(
  folder: ShapeLogFolder,
  number: number,
  position: ShapePosition,
  { definition, owner }: { readonly definition: ShapeDefinition; readonly owner: ShapeOwner },
): Promise<SavedState | null> {
  const texts = await Promise.all(SLOTS.map((slot) => folder.read(nameOf(number, slot))));
  const segments: Segment[] = [];
  for (const text of texts) {
    const segment = text === null ? null : parseSegment(text);
    if (segment === "damaged") return null;
    if (segment) segments.push(segment);
  }
  segments.sort((one, other) => (BigInt(one.state.at) < BigInt(other.state.at) ? -1 : 1));
  if (segments.some(({ state }) => state.identity !== owner.identity)) return null;
  const found = findState(segments, String(position), definition.keyPlaces);
  if (!found) return null;
  const { savedFor, rows, touched, xids } = found;
  const isOwn = savedFor.audience === owner.audience;
  const isOfAccount = owner.account !== null && savedFor.account === owner.account;
  return isOwn || isOfAccount ? { position, rows, touched, xids, isOwn } : null;
}

function findState(segments: readonly Segment[], at: string, keyPlaces: readonly number[]) {
  const touched = new Map<string, ShapeRow>();
  const laterXids = new Set<number>();
  let found: { readonly savedFor: ShapeOwner; readonly rows: ReadonlyMap<string, ShapeRow> } | null = null;
  for (const { state, changes } of segments) {
    const rows = new Map(state.rows.map((row) => [keyOf(keyPlaces, row), row]));
    if (state.at === at) found = { savedFor: state, rows: new Map(rows) };
    for (const { at: next, deleted, written, xids = [] } of changes) {
      for (const row of deleted) rows.delete(keyOf(keyPlaces, row));
      for (const row of written) rows.set(keyOf(keyPlaces, row), row);
      if (next === at) found = { savedFor: state, rows: new Map(rows) };
      else if (found) {
        for (const row of [...deleted, ...written]) touched.set(keyOf(keyPlaces, row), row);
        for (const xid of xids) laterXids.add(xid);
      }
    }
  }
  return found && { ...found, touched, xids: [...laterXids] };
}

/** Reads a segment, whose last line may be incomplete after its process was killed. Null if there is no other line. */
function parseSegment(text: string): Segment | "damaged" | null {
  const lines = text.split("\n").slice(0, -1);
  if (!lines.every(isWhole)) return "damaged";
  const [state, ...changes] = lines.map((line) => JSON.parse(line.slice(CHECKSUM_LENGTH)));
  return state ? { state, changes } : null;
}

function isWhole(line: string): boolean {
  return line.slice(0, CHECKSUM_LENGTH) === checksumOf(line.slice(CHECKSUM_LENGTH));
}

function toLine(record: StateRecord | ChangeRecord): string {
  const text = JSON.stringify(record);
  return `${checksumOf(text)}${text}\n`;
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(CHECKSUM_LENGTH, "0");
}

function nameOf(number: number, slot: number): string {
  return `${number.toString(16).padStart(8, "0")}.${slot}`;
}

function hashOf(...parts: readonly string[]): string {
  return hash("sha256", JSON.stringify(parts), "base64url");
}
