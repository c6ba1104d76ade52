import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type pg from "pg";
import { hintOf, makeRoomForApiSchema, withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { applyCommitted, fillPlaceholders, readSource } from "./apply-migrations.ts";
import {
  committedMigrations,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
} from "./committed-migrations.ts";
import { withScratchDatabase } from "./scratch-database.ts";
import { toUtf16Offset } from "./split-statements.ts";
import { splitTransactions } from "./split-transactions.ts";
import { tryStatement } from "./try-statement.ts";

/** The message of the first migration that `init --template supabase` writes. */
const IMPORT_MESSAGE = "supabase";
const MAX_REPORTED = 100;

type Fault = { readonly place: string; readonly reason: string };

/**
 * Checks an imported project before its first application: runs each statement in a scratch database, and throws one error that lists all
 * failures. Statements after a failed one may fail because of it, and are listed too.
 */
export async function checkImport(settings: MigrateSettings): Promise<void> {
  const project = settings.histories.find(({ name }) => name === "project");
  const migrations = project ? await committedMigrations(project) : [];
  if (migrations[0]?.message !== IMPORT_MESSAGE || !(await isNew(settings))) return;
  if (!(await canCreateDatabases(settings))) return;
  const faults = await withScratchDatabase(settings.shadowUrl, settings.rootUrl, async () => {
    const release = settings.histories.filter(({ name }) => name !== "project");
    await applyCommitted(settings.shadowUrl, settings.rootUrl, release);
    const found: Fault[] = [];
    for (const migration of migrations) {
      const { sql, origins } = await readSource(migration);
      found.push(...(await findFaults(settings.shadowUrl, sql, displayPath(migration.file), origins[0]!.line)));
    }
    return [...found, ...(await findSeedFaults(settings.shadowUrl, project!))];
  });
  if (faults.length > 0) throw new Error(describeFaults(faults));
}

async function isNew({ url }: MigrateSettings): Promise<boolean> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ begun: boolean }>(
      "select pg_catalog.to_regclass('graphile_migrate.histories') is not null as begun",
    );
    if (!rows[0]!.begun) return true;
    const applied = await client.query("select from graphile_migrate.histories where history = 'project' limit 1");
    return applied.rowCount === 0;
  });
}

async function canCreateDatabases({ rootUrl }: MigrateSettings): Promise<boolean> {
  try {
    return await withClient(rootUrl, async (client) => {
      const { rows } = await client.query<{ can: boolean }>(
        "select rolcreatedb or rolsuper as can from pg_catalog.pg_roles where rolname = current_user",
      );
      return rows[0]?.can === true;
    });
  } catch {
    return false;
  }
}

async function findSeedFaults(url: string, { folder }: MigrationHistory): Promise<Fault[]> {
  const file = join(dirname(folder), "seed.sql");
  return existsSync(file) ? findFaults(url, await readFile(file, "utf8"), displayPath(file), 1) : [];
}

/** Runs each statement of the file on a separate connection; a failed one is undone, and the rest is kept for the next files. */
function findFaults(url: string, text: string, file: string, firstLine: number): Promise<Fault[]> {
  return withClient(url, async (client) => {
    const sql = await fillPlaceholders(client, text);
    await makeRoomForApiSchema(client, sql);
    const faults: Fault[] = [];
    for (const { opening, statements, end } of splitTransactions(sql)) {
      await client.query(opening);
      for (const { start, sql: statement } of statements) {
        const error = await tryStatement(client, statement);
        if (error === null) continue;
        const position = Number(error.position ?? 0);
        const offset = start + (position > 0 ? toUtf16Offset(statement, position) : 0);
        faults.push({ place: `${file}:${firstLine + linesBefore(sql, offset)}`, reason: describeError(error) });
      }
      await client.query(end).catch((error: pg.DatabaseError) => {
        faults.push({ place: file, reason: describeError(error) });
      });
    }
    return faults;
  });
}

function linesBefore(sql: string, offset: number): number {
  return sql.slice(0, offset).split("\n").length - 1;
}

function describeError(error: pg.DatabaseError): string {
  const hint = hintOf(error);
  return `${error.message} (${error.code})${hint ? `. ${hint}` : ""}`;
}

function describeFaults(faults: readonly Fault[]): string {
  const shown = faults.slice(0, MAX_REPORTED).map(({ place, reason }) => `  ${place}: ${reason}`);
  const left = faults.length - shown.length;
  return [
    `${faults.length} ${faults.length === 1 ? "statement" : "statements"} of the imported project cannot run. Nothing was changed.`,
    ...shown,
    ...(left > 0 ? [`  and ${left} more`] : []),
    `Create or install what is missing, or correct the files in supabase/ and import them again: ${commandLine("init", "--template supabase --force")}.`,
  ].join("\n");
}
