import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { type AsOwner, isQueryCanceled } from "#postgres/database";
import type { WorkReport } from "#runtime/concurrency";
import { queryWithTimeout } from "./catalog-reader.ts";
import { FINGERPRINT } from "./definition-marks.ts";

const TRIGGER_FILE = join(import.meta.dirname, "../db/watch.sql");

type CatalogWatchOptions = {
  readonly asOwner: AsOwner;
  readonly intervalMs: number;
  readonly report: WorkReport;
  onChanged(): void;
  /** Runs if nothing has changed since the catalogue was read. */
  onUnchanged(): void;
};

/** The maximum share of the time that checks may take. */
const MAX_DUTY_CYCLE = 1 / 50;
const MAX_PAUSE_MS = 60_000;
/** The timeout exceeds that of the check's statement. */
const CHECK_TIMEOUT_MS = 120_000;
/** The minimum pause between two requested checks. */
const MIN_PAUSE_MS = 250;

/** Polls for changes of the database by its fingerprint. A check that fails is reported; the next one follows. */
export class CatalogWatch {
  readonly #options: CatalogWatchOptions;
  #baseline: CatalogFingerprint | null = null;
  /** Consecutive reloads without a difference, for example because of changes in schemas that are not exposed. Checks become rarer with each. */
  #falseAlarms = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #notBefore = 0;
  #checking: Promise<void> | null = null;
  /** The time that the database took for the last check, without the wait for a connection; 0 if it was not available. */
  #costMs = 0;
  #closed = false;

  constructor(options: CatalogWatchOptions) {
    this.#options = options;
  }

  /** Stores the fingerprint of the current catalogue. `changed` is true if the load produced a new catalogue. */
  setBaseline(fingerprint: CatalogFingerprint, { changed }: { changed: boolean }): void {
    const wasAlarm = this.#baseline !== null && this.#baseline.digest !== fingerprint.digest;
    if (changed) this.#falseAlarms = 0;
    else if (wasAlarm) this.#falseAlarms++;
    this.#baseline = fingerprint;
    if (!this.#timer) this.#schedule(this.#options.intervalMs);
  }

  /** Checks now, independently of the schedule. */
  check(): Promise<void> {
    this.#checking ??= this.#compare().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  /** Checks before the next scheduled time, but within the duty cycle and the back-off after reloads without a difference. */
  checkSoon(): void {
    if (!this.#timer || this.#checking) return;
    const now = performance.now();
    const dueAt = Math.max(now, this.#notBefore);
    if (dueAt < this.#dueAt) this.#schedule(dueAt - now);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#checking;
    this.#options.report.close();
  }

  #schedule(pause: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#dueAt = performance.now() + pause;
    this.#timer = setTimeout(async () => {
      await this.check();
      const { report, intervalMs } = this.#options;
      const backoff = 2 ** this.#falseAlarms;
      const rest = this.#costMs / MAX_DUTY_CYCLE;
      const pauseOf = (least: number) => Math.max(Math.min(least * backoff, MAX_PAUSE_MS), rest);
      this.#notBefore = performance.now() + pauseOf(MIN_PAUSE_MS);
      this.#schedule(report.isRunning ? pauseOf(intervalMs) : Math.max(Math.min(report.retryMs, intervalMs), rest));
    }, pause);
    this.#timer.unref();
  }

  async #compare(): Promise<void> {
    const baseline = this.#baseline;
    if (!baseline) return;
    const { asOwner, report } = this.#options;
    const read = () => asOwner((client) => this.#measure(() => readFingerprint(client, baseline)));
    this.#costMs = 0;
    const current = await report.watch(read, CHECK_TIMEOUT_MS).catch(() => null);
    // A load has finished meanwhile and has set a new baseline.
    if (!current || this.#closed || this.#baseline !== baseline) return;
    if (current.digest !== baseline.digest) {
      this.#options.onChanged();
      return;
    }
    this.#baseline = current;
    this.#falseAlarms = 0;
    this.#options.onUnchanged();
  }

  async #measure<Result>(work: () => Promise<Result>): Promise<Result> {
    const startedAt = performance.now();
    let isWork = true;
    try {
      return await work();
    } catch (error) {
      // An outage, however long, does not make later checks less frequent.
      isWork = isQueryCanceled(error);
      throw error;
    } finally {
      if (isWork) this.#costMs = performance.now() - startedAt;
    }
  }
}

/** The state of the catalogue. If the digests of two fingerprints differ, something that the catalogue describes has changed. */
type CatalogFingerprint = {
  /** The snapshot of transactions. While it stays the same, nothing has been committed. */
  readonly snapshot: string;
  readonly digest: string;
};

/** A fingerprint that equals no other, so that the next check reports a change. */
export const UNKNOWN_FINGERPRINT: CatalogFingerprint = { snapshot: "", digest: "" };

/** Reads the fingerprint. This is cheap if nothing was committed since `previous`; otherwise it scans the system catalogues. */
export async function readFingerprint(
  client: pg.ClientBase,
  previous: CatalogFingerprint | null = null,
): Promise<CatalogFingerprint> {
  const [row] = await queryWithTimeout<{ snapshot: string; digest: string | null }>(client, FINGERPRINT, [
    previous?.snapshot ?? null,
  ]);
  const { snapshot, digest } = row!;
  return { snapshot, digest: digest ?? previous!.digest };
}

/** True if an event trigger, of the service or of PostgREST, notifies the channel of schema changes. */
export async function hasSchemaChangeTrigger(client: pg.ClientBase, channel: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select exists (
      select from pg_catalog.pg_event_trigger join pg_catalog.pg_proc on pg_proc.oid = evtfoid
      where evtevent = 'ddl_command_end' and evtenabled in ('O', 'A')
        and prosrc ilike '%notify%' and position($1 in prosrc) > 0
    ) as "exists"`,
    [channel],
  );
  return rows[0]!.exists;
}

/** The SQL that creates such a trigger. The channel is a literal, because DDL has no parameters. */
export async function schemaChangeTriggerSql(channel: string): Promise<string> {
  const sql = await readFile(TRIGGER_FILE, "utf8");
  // The literal is inside the body of a function, which $$ would end.
  if (channel.includes("$$")) throw new Error(`The name of the channel, ${channel}, must not contain $$.`);
  return sql.replaceAll("'pgrst'", () => pg.escapeLiteral(channel));
}
