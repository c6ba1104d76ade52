import { columnsOfError, type RowError } from "../edit/field-errors.ts";
import type { SendRequest } from "../edit/row-changes.ts";
import { bulkInsertRequest, encodeRow } from "../edit/row-requests.ts";
import {
  convertRecord,
  type ImportPlan,
  type ImportRecord,
  type ImportRow,
  type RecordProblem,
  type RecordReader,
} from "./import-plan.ts";

export type ImportCheck = {
  readonly rows: number;
  readonly problems: readonly RecordProblem[];
  /** True if there are more problems than the list shows. */
  readonly hasMore: boolean;
};

export type ImportProgress = { readonly inserted: number; readonly lastLine: number };

export type ImportResult =
  | { readonly status: "done"; readonly inserted: number }
  | {
      readonly status: "failed";
      readonly error: RowError;
      /** The rows of the previous requests, which are committed. */
      readonly inserted: number;
      /** The lines of the request that failed as a whole. */
      readonly lines: readonly [first: number, last: number];
      /** The probable line of the error; null if it can be any of these lines. */
      readonly line: number | null;
    };

type ImportOptions = {
  readonly plan: ImportPlan;
  readonly existing: "refuse" | "skip" | "replace";
  readonly send: SendRequest;
  readonly onProgress: (progress: ImportProgress) => void;
};

type Records = AsyncIterable<readonly ImportRecord[]>;

const MAX_PROBLEMS = 100;
/** The limit for bodies of anonymous callers is 1 MiB, for others more. */
const MAX_BODY_LENGTH = 250_000;
const MAX_ROWS = 2_000;

export async function* readRecords(
  pieces: AsyncIterable<string>,
  reader: RecordReader,
): AsyncGenerator<readonly ImportRecord[]> {
  for await (const piece of pieces) yield reader.read(piece);
  yield reader.end();
}

/** Reads the whole file without sending it. */
export async function checkImport(records: Records, plan: ImportPlan): Promise<ImportCheck> {
  const problems: RecordProblem[] = [];
  let rows = 0;
  let hasMore = false;
  for await (const part of records) {
    for (const record of part) {
      const result = convertRecord(plan, record);
      rows++;
      if (!isProblem(result)) continue;
      hasMore ||= problems.length + result.length > MAX_PROBLEMS;
      problems.push(...result.slice(0, MAX_PROBLEMS - problems.length));
    }
  }
  return { rows, problems, hasMore };
}

/** Inserts the rows in requests of some thousand. Each request inserts all of its rows or none; the first failure ends the import. */
export async function importRows(records: Records, options: ImportOptions): Promise<ImportResult> {
  let inserted = 0;
  for await (const rows of batches(records, options.plan)) {
    const error = await sendBatch(rows, options);
    const lines = [rows[0]!.line, rows.at(-1)!.line] as const;
    if (error) return { status: "failed", error, inserted, lines, line: faultyLine(options.plan, rows, error) };
    inserted += rows.length;
    options.onProgress({ inserted, lastLine: lines[1] });
  }
  return { status: "done", inserted };
}

async function* batches(records: Records, plan: ImportPlan): AsyncGenerator<readonly ImportRow[]> {
  let batch: ImportRow[] = [];
  let length = 0;
  for await (const part of records) {
    for (const record of part) {
      const row = convertRecord(plan, record);
      if (isProblem(row)) continue;
      const size = encodeRow(plan.table, row.values).length;
      if (batch.length === MAX_ROWS || (length + size > MAX_BODY_LENGTH && batch.length > 0)) {
        yield batch;
        [batch, length] = [[], 0];
      }
      batch.push(row);
      length += size;
    }
  }
  if (batch.length > 0) yield batch;
}

/** Returns null if the rows were inserted. A request without a response is repeated with its key, so that it runs only once. */
async function sendBatch(
  rows: readonly ImportRow[],
  { plan, existing, send }: ImportOptions,
): Promise<RowError | null> {
  const request = bulkInsertRequest(
    plan.table,
    rows.map(({ values }) => values),
    existing,
  );
  const { path, ...options } = request;
  const headers = { ...options.headers, "Idempotency-Key": crypto.randomUUID() };
  for (let attempt = 1; ; attempt++) {
    try {
      await send(path, { ...options, headers });
      return null;
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error)) throw error;
      const rowError = error as Error & RowError & { readonly status?: number };
      if (rowError.status !== 0 || attempt === 3) return rowError;
    }
  }
}

/** Returns the line that the error is about, if its message shows it. */
function faultyLine({ table }: ImportPlan, rows: readonly ImportRow[], error: RowError): number | null {
  if (rows.length === 1) return rows[0]!.line;
  const key = /^Key \((.*?)\)=\((.*)\)/s.exec(error.details ?? "");
  if (key) {
    const columns = columnsOfError(table, error, {});
    // The last one of equal keys was refused.
    return (
      rows.findLast(({ values }) => columns.length > 0 && columns.map((name) => values[name]).join(", ") === key[2])
        ?.line ?? null
    );
  }
  const failing = /^Failing row contains \((.*)\)/s.exec(error.details ?? "")?.[1];
  if (failing !== undefined)
    return (
      rows.find(({ values }) =>
        isDescribed(
          table.columns.map(({ name }) => values[name]),
          failing,
        ),
      )?.line ?? null
    );
  if (error.code.startsWith("23")) return onlyRowWith(columnsOfError(table, error, {}), rows)?.line ?? null;
  if (!error.code.startsWith("22")) return null;
  return rows.find(({ values }) => columnsOfError(table, error, values).length > 0)?.line ?? null;
}

/** Returns the row with values in these columns, if it is the only one. */
function onlyRowWith(columns: readonly string[], rows: readonly ImportRow[]): ImportRow | undefined {
  const found = rows.filter(({ values }) => columns.length > 0 && columns.every((name) => values[name] != null));
  return found.length === 1 ? found[0] : undefined;
}

/** The length from which Postgres shortens values. */
const MAX_DESCRIBED = 60;

/** True if the description of a row has these values in this order; missing values match any. */
function isDescribed(values: readonly (string | null | undefined)[], description: string): boolean {
  let at = 0;
  for (const value of values) {
    if (value === undefined) continue;
    const found = description.indexOf((value ?? "null").slice(0, MAX_DESCRIBED), at);
    if (found === -1) return false;
    at = found;
  }
  return true;
}

function isProblem(result: ImportRow | readonly RecordProblem[]): result is readonly RecordProblem[] {
  return Array.isArray(result);
}
