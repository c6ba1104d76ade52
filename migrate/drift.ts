import type { SchemaRow } from "#catalog/definitions";
import { hasMovedApiNames, moveApiObjects, withClient } from "#postgres/client";
import { applyCommitted, applyCurrent, readCurrentState } from "./apply-migrations.ts";
import type { MigrateSettings } from "./committed-migrations.ts";
import { compareRows, compareSchemas, type SchemaDifference } from "./compare-schemas.ts";
import { type DumpedSchema, readDumpedSchema } from "./dump-schema.ts";
import { readUsersAccess, setUsersAccess, withMigrationLock } from "./migrate.ts";
import { readSchemaState, type SchemaState } from "./reverse-migration.ts";
import { withScratchDatabase } from "./scratch-database.ts";

/** Objects that the service creates without migrations: the task queue, the record of migrations, the trigger of `--watch-only`. */
const SERVICE_OBJECTS =
  /(^schema | )"?(graphile_worker|graphile_migrate|content_service_watch)\b|^event trigger content_service_/;

/**
 * Compares a database with its migrations: creates a scratch database, applies all migrations, including the files of `current/` that the
 * database has applied, and compares the schemas of both.
 */
export async function findDrift(settings: MigrateSettings): Promise<SchemaDifference[]> {
  const { url, shadowUrl, rootUrl, histories } = settings;
  return withMigrationLock(url, () =>
    withScratchDatabase(shadowUrl, rootUrl, async () => {
      const { applied } = await readCurrentState(settings);
      await applyCommitted(shadowUrl, rootUrl, histories);
      await applyCurrent({ ...settings, url: shadowUrl }, () => {}, applied);
      const access = await withClient(url, readUsersAccess);
      if (access) await withClient(shadowUrl, (client) => setUsersAccess(client, access));
      // The database may have had a schema `api` before its first migration.
      if (await withClient(url, hasMovedApiNames)) await withClient(shadowUrl, moveApiObjects);
      return compareDatabases(url, shadowUrl);
    }),
  );
}

async function compareDatabases(url: string, shadowUrl: string): Promise<SchemaDifference[]> {
  const database = await readComparedSchema(url);
  const migrations = await readComparedSchema(shadowUrl);
  const statements = await undoRestoredSpelling(database.statements, migrations.statements, shadowUrl);
  return compareSchemas({ ...database, statements }, migrations);
}

/**
 * Finds manual changes after a migration that its undo takes back: other definitions of objects that the migration has made or removed. The
 * scratch database has the migration and nothing later.
 */
export async function findChangedSince(url: string, shadowUrl: string, before: SchemaState): Promise<string[]> {
  const now = await readState(url);
  const migrated = await readState(shadowUrl);
  const differences = await compareDatabases(url, shadowUrl);
  const made = new Set(compareSchemas(migrated, before).map(({ name }) => name));
  const columns = listAddedColumns(migrated, before);
  const isTakenBack = ({ name, object, keepSql }: SchemaDifference) =>
    made.has(name) ||
    made.has(object) ||
    columns.some(({ table, mention }) => table === object && mention.test(keepSql));
  const changed = new Set(compareRows(migrated.settings, before.settings).map(({ name }) => name));
  const settings = compareRows(now.settings, migrated.settings).filter(
    ({ name, object }) => changed.has(name) && !made.has(object),
  );
  return [...differences.filter(isTakenBack), ...settings].map(({ description }) => description);
}

function readState(url: string): Promise<SchemaState> {
  return withClient(url, async (client) => {
    await client.query("begin isolation level repeatable read, read only");
    const state = await readSchemaState(client);
    await client.query("rollback");
    return state;
  });
}

/** Lists the added columns, since dropping a column drops the indexes and constraints that mention it. */
function listAddedColumns(migrated: SchemaState, before: SchemaState) {
  return [...migrated.names.values()].flatMap(({ key, object, name }) => {
    if (!object?.startsWith("column ") || before.names.has(key)) return [];
    const mention = new RegExp(`(?<![\\w"$])${RegExp.escape(name)}(?![\\w"$])`);
    return [{ table: object.slice(`column ${name} of `.length), mention }];
  });
}

/** A function whose body Postgres stores parsed, and prints. */
const PARSED_FUNCTION = /^create or replace (function|procedure) .*\nbegin atomic\n/is;

/**
 * Postgres may print such a body differently after it was restored from its printed form: `select 'a'` in a later branch of a union
 * becomes `SELECT 'a'::text`, and then `SELECT 'a'::text AS text`. So differing bodies are restored in the scratch database too, and the
 * new text counts as the old one.
 */
async function undoRestoredSpelling(
  database: readonly SchemaRow[],
  migrations: readonly SchemaRow[],
  shadowUrl: string,
): Promise<readonly SchemaRow[]> {
  const texts = new Set(database.map(({ statement }) => statement));
  const differing = migrations.filter(({ statement }) => PARSED_FUNCTION.test(statement) && !texts.has(statement));
  if (differing.length === 0) return database;
  await withClient(shadowUrl, async (client) => {
    for (const { statement } of differing) await client.query(statement);
  });
  const migratedTexts = new Map(differing.map(({ object, statement }) => [object, statement]));
  const restored = (await readComparedSchema(shadowUrl)).statements.filter(
    ({ object, statement }) => migratedTexts.has(object) && PARSED_FUNCTION.test(statement),
  );
  const spellings = new Map(restored.map(({ object, statement }) => [statement, migratedTexts.get(object)!]));
  return database.map((each) => ({ ...each, text: spellings.get(each.text) ?? each.text }));
}

/** The schema without objects that the service creates without migrations. */
export async function readComparedSchema(url: string): Promise<DumpedSchema> {
  const { statements, tableParts } = await withClient(url, readDumpedSchema);
  const isCompared = ({ object }: SchemaRow) => !SERVICE_OBJECTS.test(object);
  return { statements: statements.filter(isCompared), tableParts: tableParts.filter(isCompared) };
}
