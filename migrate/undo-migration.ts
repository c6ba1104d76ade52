import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { applyCommitted, copyFirst, onPathOf, readCurrentState } from "./apply-migrations.ts";
import {
  type CommittedMigration,
  committedMigrations,
  displayPath,
  type MigrateSettings,
} from "./committed-migrations.ts";
import { findChangedSince } from "./drift.ts";
import type { ReportLine } from "./kept-rows.ts";
import { explainHeldReads, explainTimeout, isLockTimeout, NO_LOCK_LIMITS, retryForLocks } from "./lock-limits.ts";
import type { MigrationSession } from "./lock-watch.ts";
import { withMigrationLock } from "./migrate.ts";
import { appliedMigrations, explainDivergence, readMigrationState } from "./migration-state.ts";
import { rehearseUndo } from "./rehearse.ts";
import { withScratchDatabase } from "./scratch-database.ts";
import { splitStatements } from "./split-statements.ts";
import { runWithoutRows } from "./sql-transaction.ts";
import type { UndoVerdict } from "./undo-verdict.ts";

type UndoOptions = {
  /** False: nothing is changed. */
  readonly isConfirmed: boolean;
  /** True: manual changes since the migration are undone too. */
  readonly isForced: boolean;
  readonly report: ReportLine;
  /** The file that must be the last one; any if it is missing. */
  readonly onlyFile?: string | null;
  /** Aborts the search; a started undo is completed. */
  readonly signal?: AbortSignal;
};

export type MigrationUndo = {
  readonly file: string;
  readonly undo: UndoVerdict;
  /** Manual changes since the migration that its undo would take back: `function public.note() differs from the migrations`. */
  readonly changedSince: readonly string[];
  readonly isUndone: boolean;
};

/** Undoes the project's last migration in the database, if that loses nothing from before the migration. The file stays. */
export async function undoMigration(
  settings: MigrateSettings,
  { isConfirmed, isForced, report, onlyFile = null, signal }: UndoOptions,
): Promise<MigrationUndo> {
  return withMigrationLock(settings.url, async () => {
    const migrations = await committedMigrations(settings.histories.at(-1)!);
    const last = await requireLast(settings, migrations);
    const file = displayPath(last.file);
    if (onlyFile !== null && onlyFile !== file) throw new Error(`The last migration is ${file}, not ${onlyFile}.`);
    const { undo, changedSince } = await judgeLast(settings, migrations, signal);
    const isPermitted = isConfirmed && (isForced || changedSince.length === 0);
    const isUndone = isPermitted && undo.verdict === "can be undone";
    if (isUndone) await runUndo(settings, last, { sql: undo.sql, report });
    return { file, undo, changedSince, isUndone };
  });
}

/** The last migration of the project. Throws if the database does not have it, or has others after it. */
async function requireLast(
  settings: MigrateSettings,
  migrations: readonly CommittedMigration[],
): Promise<CommittedMigration> {
  const { name: history } = settings.histories.at(-1)!;
  const last = migrations.at(-1);
  if (!last) throw new Error(`History "${history}" has no migration to undo.`);
  const { state, applied } = await withClient(settings.url, async (client) => ({
    state: await readMigrationState(client, settings.histories),
    applied: (await appliedMigrations(client)).filter((each) => each.history === history),
  }));
  if (state.kind === "diverged") throw new Error(explainDivergence(state));
  const later = applied.filter(({ hash }) => !migrations.some((migration) => migration.hash === hash));
  if (later.length > 0) {
    const names = later.map(({ name }) => `${history}/${name}`).join(", ");
    throw new Error(
      `The database has later migrations, which are not here: ${names}. Undo them first, with their files.`,
    );
  }
  if (!applied.some(({ hash }) => hash === last.hash)) {
    throw new Error(
      `${displayPath(last.file)} is not applied to this database. ${commandLine("migrate", "uncommit")} turns it back into files in current/.`,
    );
  }
  const current = (await readCurrentState(settings)).applied.filter((file) => file.history === history);
  if (current.length > 0) {
    const files = current.map(({ file }) => displayPath(file)).join(", ");
    throw new Error(`The database has applied ${files} after ${displayPath(last.file)}. Commit the files first.`);
  }
  return last;
}

/** Judges the migration in a scratch database with the migrations before it. */
async function judgeLast(
  settings: MigrateSettings,
  migrations: readonly CommittedMigration[],
  signal: AbortSignal | undefined,
): Promise<Pick<MigrationUndo, "undo" | "changedSince">> {
  const { url, shadowUrl, rootUrl, histories } = settings;
  const history = histories.at(-1)!;
  const folder = await mkdtemp(join(tmpdir(), "migrations-"));
  try {
    const before = await copyFirst({ history, migrations, count: migrations.length - 1 }, folder);
    const judge = async () => {
      await applyCommitted(shadowUrl, rootUrl, [...histories.slice(0, -1), before]);
      const { undo, before: schema } = await rehearseUndo({ ...settings, url: shadowUrl }, migrations.at(-1)!);
      return { undo, changedSince: await findChangedSince(url, shadowUrl, schema) };
    };
    return await withScratchDatabase(shadowUrl, rootUrl, judge, { signal });
  } finally {
    await rm(folder, { recursive: true });
  }
}

type UndoRun = { readonly sql: string; readonly report: ReportLine };

async function runUndo(
  { url, lockLimits: limits = NO_LOCK_LIMITS }: MigrateSettings,
  { history, hash }: CommittedMigration,
  { sql, report }: UndoRun,
): Promise<void> {
  const attempt = (session: MigrationSession) =>
    withClient(url, (client) =>
      onPathOf({ name: history }, client, async () => {
        await client.query(
          "select pg_catalog.set_config('application_name', $1, false), pg_catalog.set_config('lock_timeout', $2, false)",
          [session.applicationName, String(limits.lockTimeoutMs)],
        );
        await client.query("begin");
        try {
          for (const statement of splitStatements(sql)) await runWithoutRows(client, statement.sql);
          await client.query("delete from graphile_migrate.histories where history = $1 and hash = $2", [
            history,
            hash,
          ]);
          await client.query("commit");
          return null;
        } catch (error) {
          await client.query("rollback");
          if (error instanceof pg.DatabaseError) return { error };
          throw error;
        }
      }),
    );
  const failed = await retryForLocks(url, limits, report, attempt);
  if (!failed) return;
  const { fault, seen } = failed;
  const reason =
    seen.heldTable !== null
      ? explainHeldReads(seen.heldTable, limits)
      : isLockTimeout(fault.error)
        ? explainTimeout(seen.wait, limits, "nothing")
        : [fault.error.message, fault.error.detail].filter(Boolean).join(": ");
  throw new Error(`The migration is not undone, and nothing was changed. ${reason}`, { cause: fault.error });
}
