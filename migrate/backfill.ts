import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import { ExplainedError } from "#runtime";
import { type Backfill, fillNext, type KeyValues, readBackfills, readNext, readPressure } from "./backfill-batch.ts";
import { BACKFILL_LOCK, recordEnd, recordError, recordStart, recordStep } from "./backfill-progress.ts";
import { withInterruption } from "./interruption.ts";

type BackfillOptions = {
  /** The share of the time in which batches run, in percent. */
  readonly load: number;
  readonly report: (line: string) => void;
};

type BackfillSubject = Pick<Backfill, "table" | "column">;

type BackfillStatus = BackfillSubject & { readonly rows: number; readonly missing: number };

/** How many rows the backfills of the database have left. Reads their tables. */
export function readBackfillStatus(url: string): Promise<BackfillStatus[]> {
  return withBackfills(url, async (client, backfills) => {
    const statuses: BackfillStatus[] = [];
    for (const { table, column, isFilled } of backfills) {
      const { rows } = await client.query<Omit<BackfillStatus, "table" | "column">>(
        `select pg_catalog.count(*)::pg_catalog.float8 as rows, pg_catalog.count(*) filter (where (${isFilled}) is false)::pg_catalog.float8 as missing
         from ${table}`,
      );
      statuses.push({ table, column, ...rows[0]! });
    }
    return statuses;
  });
}

type CompletedBackfill = BackfillSubject & { readonly filled: number; readonly milliseconds: number };

/** The limit is short, since others wait behind a batch that waits for the lock of the table. */
const LOCK_TIMEOUT = "1s";

/** Fills the declared columns. A signal stops it after the running batch; the rows show which work is left. */
export function runBackfills(url: string, options: BackfillOptions): Promise<CompletedBackfill[]> {
  return withBackfills(url, (client, backfills) =>
    withInterruption(async (untilInterrupted) => {
      if (backfills.length > 0) await untilInterrupted(() => lockBackfills(client, options));
      await client.query("select pg_catalog.set_config('lock_timeout', $1, false)", [LOCK_TIMEOUT]);
      const completed: CompletedBackfill[] = [];
      for (const backfill of backfills) {
        const { table, column } = backfill;
        await recordStart(client, backfill, options.load);
        const counts = await new BackfillRun(client, backfill, options, untilInterrupted)
          .complete()
          .catch(async (error) => {
            // The other connection may be lost, or in a statement.
            await withClient(url, (other) => recordError(other, backfill, error.message)).catch(() => {});
            throw error;
          });
        await recordEnd(client, backfill);
        completed.push({ table, column, ...counts });
      }
      return completed;
    }),
  );
}

function withBackfills<T>(
  url: string,
  work: (client: pg.Client, backfills: readonly Backfill[]) => Promise<T>,
): Promise<T> {
  return withClient(url, async (client) => {
    // Rows that a policy hides would stay unfilled: with this setting Postgres raises an error instead.
    await client.query("select pg_catalog.set_config('row_security', 'off', false)");
    return work(client, await readBackfills(client));
  });
}

async function lockBackfills(client: pg.Client, { report }: BackfillOptions): Promise<void> {
  const { rows } = await client.query<{ locked: boolean }>("select pg_catalog.pg_try_advisory_lock($1) as locked", [
    BACKFILL_LOCK,
  ]);
  if (rows[0]!.locked) return;
  report("Another backfill runs in this database. Waiting for its end.");
  await client.query("select pg_catalog.pg_advisory_lock($1)", [BACKFILL_LOCK]);
}

type UntilInterrupted = Parameters<Parameters<typeof withInterruption>[0]>[0];

const BATCH_MS = 100;
const FIRST_ROWS = 200;
const MAX_ROWS = 20_000;
const REPORT_MS = 2000;
const RETRY_MS = 1000;
/** The limit of waits, since others may wait for one another without end. */
const MAX_WAITS = 5;
const MAX_LAG_BYTES = 16 * 2 ** 20;

const CHECK_VIOLATION = "23514";
/** Lock not available, deadlock detected, serialization failure. */
const TO_REPEAT: readonly (string | undefined)[] = ["55P03", "40P01", "40001"];
/** Data exceptions, integrity constraint violations, and errors that functions raise. */
const OF_A_ROW = /^(22|23|P0)/;

const formatCount = (rows: number) => Math.round(rows).toLocaleString("en");

class BackfillRun {
  readonly #client: pg.Client;
  readonly #backfill: Backfill;
  readonly #options: BackfillOptions;
  readonly #untilInterrupted: UntilInterrupted;
  readonly #begun = performance.now();
  #reported = performance.now();
  #batchRows = FIRST_ROWS;
  #read = 0;
  #readSinceReport = 0;
  #filled = 0;

  constructor(client: pg.Client, backfill: Backfill, options: BackfillOptions, untilInterrupted: UntilInterrupted) {
    this.#client = client;
    this.#backfill = backfill;
    this.#options = options;
    this.#untilInterrupted = untilInterrupted;
  }

  async complete(): Promise<Omit<CompletedBackfill, keyof BackfillSubject>> {
    do {
      while ((await this.#fillAll()) > 0) await this.#pause(RETRY_MS);
    } while (!(await this.#validate()));
    return { filled: this.#filled, milliseconds: Math.round(performance.now() - this.#begun) };
  }

  /** The number of rows that are left, because others had locked them. */
  async #fillAll(): Promise<number> {
    this.#read = 0;
    let last: KeyValues = null;
    let left = 0;
    for (;;) {
      await this.#awaitOthers();
      const begun = performance.now();
      const batch = await this.#fillBatch(last);
      if (batch === "repeat") continue;
      if (batch === null) return left;
      const spent = performance.now() - begun;
      last = batch.last;
      left += batch.missing - batch.filled;
      this.#read += batch.read;
      this.#readSinceReport += batch.read;
      this.#filled += batch.filled;
      const rows = batch.read * Math.min(Math.max(BATCH_MS / spent, 0.5), 2);
      this.#batchRows = Math.min(Math.max(Math.round(rows), 1), MAX_ROWS);
      await this.#report();
      await this.#pause((spent * (100 - this.#options.load)) / this.#options.load);
    }
  }

  async #fillBatch(last: KeyValues) {
    try {
      return await fillNext(this.#client, this.#backfill, last, this.#batchRows);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      if (TO_REPEAT.includes(error.code)) {
        await this.#report(error.message);
        await this.#pause(RETRY_MS);
        return "repeat";
      }
      if (!OF_A_ROW.test(error.code ?? "")) throw error;
      // Smaller batches find the row that fails.
      if (this.#batchRows === 1) throw await this.#explainRow(last, error);
      this.#batchRows = Math.ceil(this.#batchRows / 2);
      return "repeat";
    }
  }

  async #explainRow(last: KeyValues, error: pg.DatabaseError): Promise<Error> {
    const { table, column, key } = this.#backfill;
    const row = await readNext(this.#client, this.#backfill, last, 1);
    const values = key.map(({ name }, at) => `${name} = ${row?.last[at]}`).join(", ");
    return new ExplainedError(
      `${table}.${column} cannot be filled in the row ${values}: ${error.message}. Correct it, and run this again.`,
      { cause: error },
    );
  }

  /** False if there are rows that were not filled. */
  async #validate(): Promise<boolean> {
    const { table, constraint } = this.#backfill;
    const validate = `alter table ${table} validate constraint ${quotedName(constraint)}`;
    for (;;) {
      try {
        await this.#untilInterrupted(() => this.#client.query(validate));
        return true;
      } catch (error) {
        if (!(error instanceof pg.DatabaseError)) throw error;
        if (error.code === CHECK_VIOLATION) return false;
        if (!TO_REPEAT.includes(error.code)) throw error;
      }
      await this.#pause(RETRY_MS);
    }
  }

  async #awaitOthers(): Promise<void> {
    for (let waits = 0; ; waits++) {
      const { isPaused, isContended, lagBytes } = await readPressure(this.#client, this.#backfill);
      const isBehind = lagBytes > MAX_LAG_BYTES;
      if (!isPaused && !isBehind && (!isContended || waits >= MAX_WAITS)) return;
      await this.#report(
        isPaused
          ? "until it is resumed"
          : isBehind
            ? `${formatCount(lagBytes / 2 ** 20)} MiB wait for a replica`
            : "others wait for its locks",
      );
      await this.#pause(RETRY_MS);
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    try {
      await this.#untilInterrupted(() => sleep(milliseconds));
    } catch (error) {
      const { table, column } = this.#backfill;
      const filled = `${formatCount(this.#filled)} rows of ${table}.${column} were filled.`;
      throw new ExplainedError(`${(error as Error).message} ${filled} Run it again to continue.`, { cause: error });
    }
  }

  async #report(reason: string | null = null): Promise<void> {
    const elapsed = performance.now() - this.#reported;
    if (elapsed < REPORT_MS) return;
    const rowsPerSecond = (this.#readSinceReport * 1000) / elapsed;
    this.#reported = performance.now();
    this.#readSinceReport = 0;
    const { table, column, estimatedRows } = this.#backfill;
    const total = estimatedRows > this.#read ? ` of about ${formatCount(estimatedRows)}` : "";
    const waits = reason === null ? "" : `; paused: ${reason}`;
    this.#options.report(
      `${table}.${column}: ${formatCount(this.#read)}${total} rows read, ${formatCount(this.#filled)} filled${waits}`,
    );
    const step = { read: this.#read, filled: this.#filled, rowsPerSecond, waitsFor: reason };
    await recordStep(this.#client, this.#backfill, step);
  }
}
