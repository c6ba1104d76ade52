import { createHash } from "node:crypto";
import type pg from "pg";
import { ask } from "./ask.ts";
import { inSlices } from "./slices.ts";

/** Runs one query of the introspection. Whatever it returns is content: a difference in it is a new catalogue. */
export type Read = <Row extends object>(subject: string, text: string, values?: readonly unknown[]) => Promise<Row[]>;

export type Reader = {
  readonly read: Read;
  /** Milliseconds that each subject took, its transfer included. */
  readonly timings: Readonly<Record<string, number>>;
  /** Of all that was read so far. */
  contentHash(): string;
};

const ROWS_HASHED_AT_ONCE = 100;

/** The same rows make another catalogue when other things are wanted of them. */
export function makeReader(client: pg.ClientBase, wanted: object): Reader {
  const hash = createHash("sha1").update(JSON.stringify(wanted));
  const timings: Record<string, number> = {};

  const read: Read = async <Row extends object>(subject: string, text: string, values: readonly unknown[] = []) => {
    const startedAt = performance.now();
    const rows = await ask<Row>(client, text, values);
    hash.update(subject);
    await inSlices(chunks(rows), (chunk) => hash.update(JSON.stringify(chunk)));
    timings[subject] = (timings[subject] ?? 0) + Math.round(performance.now() - startedAt);
    return rows;
  };

  return { read, timings, contentHash: () => hash.copy().digest("hex") };
}

function* chunks<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += ROWS_HASHED_AT_ONCE) {
    yield rows.slice(start, start + ROWS_HASHED_AT_ONCE);
  }
}
