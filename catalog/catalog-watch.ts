import type pg from "pg";
import { type AsOwner, isQueryCanceled } from "#postgres/database";
import type { WorkReport } from "#runtime/concurrency";
import { queryWithTimeout } from "./catalog-reader.ts";

/**
 * Hashes the identity and `xmin` of every row that the introspection reads, so that changes of grants, comments and settings
 * count. Rows of `pg_class` and roles are hashed by content, because truncate, refresh and password changes rewrite them without
 * a change that matters here. Temporary tables are in other schemas, and vacuum updates rows in place.
 * Counters of `pg_stat_sys_tables` would be cheaper, but come up to ten seconds late, and on Postgres 14 perhaps never.
 */
const FINGERPRINT = `
  with namespace as (
    select oid from pg_catalog.pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'
  ), relation as materialized (
    select c.oid, pg_catalog.hash_record_extended(row(c.oid, c.relname, c.relnamespace, c.reltype, c.relowner, c.relkind,
      c.relispartition, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.relacl, c.reloptions), 0) as mark
    from pg_catalog.pg_class c
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and c.relnamespace in (select oid from namespace)
  ), marks (mark) as (
    select pg_catalog.hash_record_extended(row(oid, xmin), 1) from pg_catalog.pg_namespace where oid in (select oid from namespace)
    union all select mark from relation
    union all select pg_catalog.hash_record_extended(row(a.attrelid, a.attnum, a.xmin), 2)
      from pg_catalog.pg_attribute a join relation on relation.oid = a.attrelid where a.attnum > 0
    union all select pg_catalog.hash_record_extended(row(d.oid, d.xmin), 3)
      from pg_catalog.pg_attrdef d join relation on relation.oid = d.adrelid
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 4)
      from pg_catalog.pg_constraint where connamespace in (select oid from namespace)
    union all select pg_catalog.hash_record_extended(row(i.indexrelid, i.xmin), 5)
      from pg_catalog.pg_index i join relation on relation.oid = i.indrelid
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 6) from pg_catalog.pg_policy
    union all select pg_catalog.hash_record_extended(row(r.oid, r.xmin), 7)
      from pg_catalog.pg_rewrite r join relation on relation.oid = r.ev_class
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 8) from pg_catalog.pg_trigger where tgtype & 64 <> 0
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 9)
      from pg_catalog.pg_type where typnamespace in (select oid from namespace)
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 10) from pg_catalog.pg_enum
    union all select pg_catalog.hash_record_extended(row(rngtypid, xmin), 11) from pg_catalog.pg_range
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 12)
      from pg_catalog.pg_proc where pronamespace in (select oid from namespace)
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 13) from pg_catalog.pg_cast
    union all select pg_catalog.hash_record_extended(row(objoid, classoid, objsubid, xmin), 14)
      from pg_catalog.pg_description where objoid >= 16384 or classoid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
    union all select pg_catalog.hash_record_extended(row(oid, xmin), 15) from pg_catalog.pg_extension
    union all select pg_catalog.hash_record_extended(row(oid, rolname, rolsuper, rolinherit, rolcanlogin, rolbypassrls), 16)
      from pg_catalog.pg_roles
    union all select pg_catalog.hash_record_extended(row(roleid, member, grantor, xmin), 17) from pg_catalog.pg_auth_members
    union all select pg_catalog.hash_record_extended(row(s.setdatabase, s.setrole, s.xmin), 18)
      from pg_catalog.pg_db_role_setting s left join pg_catalog.pg_database d on d.oid = s.setdatabase
      where s.setdatabase = 0 or d.datname = pg_catalog.current_database()
    union all select pg_catalog.hash_record_extended(row(oid, datname, datdba), 19)
      from pg_catalog.pg_database where datname = pg_catalog.current_database()
    union all select pg_catalog.hash_record_extended(row(c.objoid, c.classoid, c.xmin), 20)
      from pg_catalog.pg_shdescription c join pg_catalog.pg_database d on d.oid = c.objoid and d.datname = pg_catalog.current_database()
  )
  select now.snapshot, case when now.snapshot is distinct from $1 then (select pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.bit_xor(mark)) from marks) end as digest
  from (select pg_catalog.pg_current_snapshot()::pg_catalog.text as snapshot) now`;

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
