import type pg from "pg";
import { hasMovedApiNames, makeRoomForApiSchema, withClient, withServiceClient } from "#postgres/client";
import {
  applyCommitted,
  fillPlaceholders,
  onPathOf,
  pendingMigrations,
  readCurrentState,
  readSource,
} from "./apply-migrations.ts";
import { refuseRehearsalOnCitus } from "./citus-nodes.ts";
import {
  type CommittedMigration,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
} from "./committed-migrations.ts";
import { type CurrentFile, readCurrentFiles } from "./current-files.ts";
import { groupIntoMigrations } from "./current-groups.ts";
import { MANY_ROWS } from "./many-rows.ts";
import {
  compareStates,
  NO_MEASURES,
  prepareMeasuring,
  type RelationStates,
  type RowEstimates,
  readRelations,
  readRowEstimates,
} from "./measure-statement.ts";
import { measureTransaction } from "./measured-transaction.ts";
import { findPlace, MigrationError, type MigrationSource } from "./migration-error.ts";
import { readProgress } from "./migration-progress.ts";
import { createRecord, explainDivergence, readMigrationState } from "./migration-state.ts";
import { placeReleaseText } from "./release-text.ts";
import type { RowLockFinder } from "./row-locks.ts";
import { withScratchDatabase } from "./scratch-database.ts";
import { runsWithoutTransaction, type SqlStatement, splitStatements, toUtf16Offset } from "./split-statements.ts";
import { splitTransactions } from "./split-transactions.ts";
import {
  estimateHeldRequests,
  type JudgedStatement,
  judgeWithoutTransaction,
  type RequestRate,
  reachesOutside,
} from "./statement-verdict.ts";
import { withTriedRowLocks } from "./tried-row-locks.ts";
import {
  judgeUndo,
  readDroppedColumns,
  readUndoStart,
  type StatementEffect,
  type StatementPlace,
  toEffect,
  type UndoVerdict,
} from "./undo-verdict.ts";

export type RehearsedStatement = JudgedStatement & {
  readonly file: string;
  /** The verdict on the migration, at its last statement. */
  readonly undo: UndoVerdict | null;
  /** The number of requests that would wait, by the rates of the last hour; absent where none are recorded. */
  readonly heldRequests?: number;
};

type PendingMigration = MigrationSource & {
  readonly history: MigrationHistory["name"];
  readonly transaction: boolean;
  /** The number of its transactions that the database has. */
  readonly committed: number;
};

type RehearsalOptions = {
  /** The database whose tables have the numbers of rows; null: tables are judged as if they were large. */
  readonly originalUrl: string | null;
  readonly withRows: boolean;
  /** Null: no rates are recorded. */
  readonly requestRates?: readonly RequestRate[] | null;
};

/** The rows of the original; `withRows`: the copy has them. */
type OriginalRows = { readonly estimates: RowEstimates; readonly withRows: boolean };

const MANY_ROWS_EACH: OriginalRows = { estimates: () => MANY_ROWS, withRows: false };

/** Applies the pending migrations to a copy of the database, statement by statement. The settings are those of the copy. */
export async function rehearseMigrations(
  settings: MigrateSettings,
  { originalUrl, withRows, requestRates = null }: RehearsalOptions,
): Promise<RehearsedStatement[]> {
  const { estimates } = originalUrl === null ? MANY_ROWS_EACH : { estimates: await readOriginal(originalUrl) };
  return rehearsePending(settings, async (migration) => {
    const { statements, undo } = await rehearseWithUndo(settings, migration, { estimates, withRows });
    return statements.map((statement, index) => ({
      ...statement,
      undo: index === statements.length - 1 ? undo : null,
      ...(requestRates && { heldRequests: estimateHeldRequests(statement, requestRates) }),
    }));
  });
}

function readOriginal(url: string): Promise<RowEstimates> {
  return withServiceClient(url, async (client) => {
    await refuseRehearsalOnCitus(client);
    return readRowEstimates(client);
  });
}

/** Applies a committed migration to a copy without rows that has those before it, and judges whether it can be undone. */
export async function rehearseUndo(settings: MigrateSettings, migration: CommittedMigration) {
  const pending = await readCommitted(migration);
  return rehearseWithUndo(settings, pending, MANY_ROWS_EACH);
}

async function rehearseWithUndo(settings: MigrateSettings, migration: PendingMigration, original: OriginalRows) {
  const start = await withPath(settings, migration, (client) => readUndoStart(client, original.withRows));
  const { statements, effects } = await rehearseOne(settings, migration, original);
  const undo = await withPath(settings, migration, (client) => judgeUndo(client, start, effects));
  return { statements, undo, before: start.schema };
}

/**
 * Applies the files in `current/` to an empty database with all committed migrations, and judges them as if tables were large. Null if
 * they fail there: a rehearsal skips statements that would change the server.
 */
export async function rehearseCurrent(settings: MigrateSettings): Promise<RehearsedStatement[] | null> {
  return withCommittedSchema(settings, {}, async (shadow) => {
    const rehearse = async (migration: PendingMigration) =>
      (await rehearseOne(shadow, migration, MANY_ROWS_EACH)).statements;
    return rehearsePending(shadow, rehearse).catch((error) => {
      if (error instanceof MigrationError) return null;
      throw error;
    });
  });
}

/** Runs the work on a scratch database with all committed migrations and no rows, and passes its settings to the work. */
export function withCommittedSchema<T>(
  settings: MigrateSettings,
  options: { readonly signal?: AbortSignal },
  work: (settings: MigrateSettings) => Promise<T>,
): Promise<T> {
  const { shadowUrl, rootUrl, histories } = settings;
  const applyAndWork = async () => {
    await applyCommitted(shadowUrl, rootUrl, histories);
    return work({ ...settings, url: shadowUrl });
  };
  return withScratchDatabase(shadowUrl, rootUrl, applyAndWork, options);
}

async function rehearsePending(
  settings: MigrateSettings,
  rehearse: (migration: PendingMigration) => Promise<RehearsedStatement[]>,
): Promise<RehearsedStatement[]> {
  const pending = await withClient(settings.url, (client) => listPending(client, settings));
  await withClient(settings.url, dropUserMappings);
  const rehearsed: RehearsedStatement[] = [];
  for (const migration of pending) rehearsed.push(...(await rehearse(migration)));
  return rehearsed;
}

/** Uses a separate connection: settings that a migration makes for its session must not reach others. */
function withPath<T>(
  { url }: MigrateSettings,
  { history }: PendingMigration,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> {
  return withClient(url, (client) => onPathOf({ name: history }, client, () => work(client)));
}

/** True if a rehearsal would apply something. */
export async function isAnyPending(settings: MigrateSettings): Promise<boolean> {
  const { kind } = await withClient(settings.url, (client) => readMigrationState(client, settings.histories));
  return kind !== "current" || (await readCurrentState(settings)).pending.length > 0;
}

async function listPending(client: pg.ClientBase, settings: MigrateSettings): Promise<PendingMigration[]> {
  const { histories } = settings;
  const state = await readMigrationState(client, histories);
  if (state.kind === "diverged") throw new Error(explainDivergence(state));
  await createRecord(client);
  const committed: PendingMigration[] = [];
  const isApiMoved = await hasMovedApiNames(client);
  for (const migration of await pendingMigrations(client, histories)) {
    const read = await readCommitted(migration);
    const isPlaced = isApiMoved && migration.history !== "project";
    const pending = isPlaced ? { ...read, sql: placeReleaseText(read.sql) } : read;
    const stepped = { migration, sql: pending.sql, transactions: splitTransactions(pending.sql) };
    committed.push({ ...pending, committed: await readProgress(client, stepped) });
  }
  const { pending } = await readCurrentState(settings);
  const current = (await readCurrentFiles(histories)).filter(({ file }) => pending.includes(displayPath(file)));
  return [...committed, ...groupIntoMigrations(current).map(joinFiles)];
}

async function readCommitted(migration: CommittedMigration): Promise<PendingMigration> {
  const source = await readSource(migration);
  return { ...source, history: migration.history, transaction: !runsWithoutTransaction(source.sql), committed: 0 };
}

/** Joins the files; each may lack its last semicolon. */
function joinFiles(files: readonly CurrentFile[]): PendingMigration {
  const { history, transaction } = files[0]!;
  const origins = files.flatMap((file) => [...file.origins, file.origins.at(-1)!]);
  return { history, transaction, committed: 0, origins, sql: files.map(({ sql }) => `${sql}\n`).join(";\n") };
}

/** Drops user mappings: otherwise the copy would write to the servers of its foreign tables. */
async function dropUserMappings(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select pg_catalog.format('drop user mapping for %s server %I',
       case umuser when 0 then 'public' else pg_catalog.quote_ident(usename) end, srvname) as statement from pg_catalog.pg_user_mappings`,
  );
  for (const { statement } of rows) await client.query(statement);
}

const SKIPPED = { ...NO_MEASURES, verdict: "not rehearsed", safeForm: null, undo: null } as const;

type RehearsedMigration = {
  readonly statements: RehearsedStatement[];
  readonly effects: StatementEffect[];
};

async function rehearseOne(
  settings: MigrateSettings,
  migration: PendingMigration,
  original: OriginalRows,
): Promise<RehearsedMigration> {
  const rehearse = (findRowLocks: RowLockFinder | null) =>
    withPath(settings, migration, async (client) => {
      const source = { sql: await fillPlaceholders(client, migration.sql), origins: migration.origins };
      await makeRoomForApiSchema(client, source.sql);
      return migration.transaction
        ? rehearseInTransactions(client, { ...source, committed: migration.committed }, { ...original, findRowLocks })
        : rehearseWithout(client, source, original);
    });
  return original.withRows ? withTriedRowLocks(settings.url, rehearse) : rehearse(null);
}

const UNDEFINED_OBJECT = "42704";
const MISSING_HINT = "A rehearsal creates no roles and has no user mappings. Create roles before it.";

async function rehearseInTransactions(
  client: pg.ClientBase,
  source: MigrationSource & Pick<PendingMigration, "committed">,
  { estimates, withRows, findRowLocks }: OriginalRows & { readonly findRowLocks: RowLockFinder | null },
): Promise<RehearsedMigration> {
  const rehearsed: RehearsedMigration = { statements: [], effects: [] };
  let begun: RelationStates | null = null;
  for (const { opening, statements, end } of splitTransactions(source.sql).slice(source.committed)) {
    await client.query(opening);
    try {
      const measured = await measureTransaction(client, { estimates, hasRows: withRows, findRowLocks });
      begun ??= measured.begun;
      let droppedBefore = await readDroppedColumns(client);
      for (const statement of statements) {
        const { start, sql } = statement;
        const place = sourceOf(statement, source);
        if (reachesOutside(sql)) {
          addSkipped(rehearsed, place);
          continue;
        }
        const { judged, before, after } = await measured
          .run(sql, { isLast: statement === statements.at(-1) })
          .catch((error) => rethrowAt(error, source, start, sql));
        const droppedAfter = await readDroppedColumns(client);
        rehearsed.statements.push({ ...place, ...judged, undo: null });
        rehearsed.effects.push(toEffect(place, judged, { begun, before, after, droppedBefore, droppedAfter }));
        droppedBefore = droppedAfter;
      }
      await client.query(end);
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  }
  return rehearsed;
}

function addSkipped({ statements, effects }: RehearsedMigration, place: StatementPlace): void {
  statements.push({ ...place, ...SKIPPED });
  effects.push({ place, isSkipped: true, touched: [], changesRows: false, dropped: [] });
}

const DEFINES_OBJECTS = /^(create|alter|drop|comment|reindex|refresh|cluster|vacuum|analyze)\b/i;

async function rehearseWithout(
  client: pg.ClientBase,
  source: MigrationSource,
  { estimates, withRows }: OriginalRows,
): Promise<RehearsedMigration> {
  await prepareMeasuring(client);
  const rehearsed: RehearsedMigration = { statements: [], effects: [] };
  const [statement] = splitStatements(source.sql) as [SqlStatement];
  const { start, sql } = statement;
  const place = sourceOf(statement, source);
  if (reachesOutside(sql)) {
    addSkipped(rehearsed, place);
    return rehearsed;
  }
  const before = await readRelations(client);
  const droppedBefore = await readDroppedColumns(client);
  const begun = performance.now();
  await client.query(sql).catch((error) => rethrowAt(error, source, start, sql));
  const milliseconds = Math.round(performance.now() - begun);
  const after = await readRelations(client);
  const droppedAfter = await readDroppedColumns(client);
  const estimate = ({ name }: { readonly name: string }) => estimates(name);
  const { rewritten } = compareStates(
    { sql, texts: [], begun: before, before, after },
    { hasRows: withRows, estimate },
  );
  const measures = { ...NO_MEASURES, rewritten, milliseconds };
  rehearsed.statements.push({ ...place, ...measures, ...judgeWithoutTransaction(sql), undo: null });
  const effect = toEffect(place, measures, { begun: before, before, after, droppedBefore, droppedAfter });
  // The counters and locks of the statement ended with it.
  rehearsed.effects.push({ ...effect, changesRows: effect.changesRows || !DEFINES_OBJECTS.test(sql) });
  return rehearsed;
}

function sourceOf({ start, sql }: SqlStatement, source: MigrationSource) {
  const { file, line } = findPlace(source, start);
  return { file, line, sql };
}

function rethrowAt(error: pg.DatabaseError, source: MigrationSource, start: number, sql: string): never {
  const position = Number(error.position ?? 0);
  if (error.code === UNDEFINED_OBJECT) error.hint ??= MISSING_HINT;
  throw new MigrationError(error, source, start + (position > 0 ? toUtf16Offset(sql, position) : 0));
}
