import type pg from "pg";
import { hasMovedApiNames } from "#postgres/client";
import { commandLine } from "#runtime";
import { type CommittedMigration, committedMigrations, type MigrationHistory } from "./committed-migrations.ts";
import { appliedMigrations } from "./migration-state.ts";
import { placeReleaseText } from "./release-text.ts";
import { splitStatements } from "./split-statements.ts";
import { tryStatement } from "./try-statement.ts";

const DEFINITION =
  /^create (?:or replace )?(?:function|table(?: if not exists)?|view|sequence|type|schema(?: if not exists)?) ([\w.]+)/gm;
const FUNCTION = /^create (?:or replace )?function ([\w.]+)/;
/** Statements that are safe in the example application: its policies and tables, which a project may have changed, are not created again. */
const WITHOUT_ROWS =
  /^(create (or replace )?(function|trigger)|create (unique )?index|(grant execute|comment) on function) /;
const DROP = /\bdrop\s+(?:function|table|view|sequence|type)\s+(?:if\s+exists\s+)?([\w.]+)/gi;

const PRESENT_OBJECTS = `
  with schemas as (select oid, nspname from pg_catalog.pg_namespace where nspname operator(pg_catalog.=) any ($1::pg_catalog.name[]))
  select nspname::pg_catalog.text as name from schemas
  union select nspname operator(pg_catalog.||) '.' operator(pg_catalog.||) relname
    from pg_catalog.pg_class join schemas on schemas.oid operator(pg_catalog.=) relnamespace
  union select nspname operator(pg_catalog.||) '.' operator(pg_catalog.||) proname
    from pg_catalog.pg_proc join schemas on schemas.oid operator(pg_catalog.=) pronamespace
  union select nspname operator(pg_catalog.||) '.' operator(pg_catalog.||) typname
    from pg_catalog.pg_type join schemas on schemas.oid operator(pg_catalog.=) typnamespace`;

/**
 * Objects that the platform's applied migrations have created and that are gone, for example because a cleaning script has dropped their
 * schema. Objects that a migration of the project drops by name do not count.
 */
export async function findLostObjects(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<readonly string[]> {
  const platform = (await releasedMigrations(client, histories)).filter(({ history }) => history === "platform");
  const defined = definedNames(platform.map(({ body }) => body));
  if (defined.length === 0) return [];
  const schemas = new Set(defined.map((name) => name.split(".")[0]));
  const { rows } = await client.query<{ name: string }>(PRESENT_OBJECTS, [[...schemas]]);
  const present = new Set(rows.map(({ name }) => name));
  const lost = defined.filter((name) => !present.has(name));
  if (lost.length === 0) return lost;
  const project = histories.find(({ name }) => name === "project");
  const own = project ? await committedMigrations(project) : [];
  const dropped = new Set(own.flatMap(({ body }) => [...body.matchAll(DROP)].map(([, name]) => name)));
  return lost.filter((name) => !dropped.has(name));
}

/** The defined names, without those that a later migration of the platform drops. */
function definedNames(bodies: readonly string[]): readonly string[] {
  const text = bodies.join("\n");
  const created = [...text.matchAll(DEFINITION)].map((match) => ({
    name: match[1]!,
    isCreated: true,
    at: match.index,
  }));
  const dropped = [...text.matchAll(DROP)].map((match) => ({ name: match[1]!, isCreated: false, at: match.index }));
  const defined = new Set<string>();
  for (const { name, isCreated } of [...created, ...dropped].toSorted((one, other) => one.at - other.at)) {
    if (isCreated) defined.add(name);
    else defined.delete(name);
  }
  return [...defined];
}

export function explainLostObjects(lost: readonly string[]): string {
  const shown = lost.slice(0, 5).join(", ");
  return (
    `The database has lost ${lost.length} objects that its migrations created (${shown}${lost.length > 5 ? ", …" : ""}). ` +
    `${commandLine("migrate")} creates them again, without their rows, which a backup has. Then ${commandLine("migrate", "status")} ` +
    "prints the SQL for your objects that were dropped with them, such as policies."
  );
}

/** Runs the release's statements about lost objects again, in their order. Returns the lost objects. */
export async function restoreLostObjects(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<readonly string[]> {
  const lost = await findLostObjects(client, histories);
  if (lost.length === 0) return lost;
  const mentioned = new RegExp(`(?<![\\w.])(?:${lost.map((name) => name.replace(".", "\\.")).join("|")})(?!\\w)`);
  await client.query("begin");
  try {
    for (const { history, body } of await releasedMigrations(client, histories)) {
      for (const { sql } of splitStatements(body)) {
        if (!mentioned.test(sql) || (history === "content" && !WITHOUT_ROWS.test(sql))) continue;
        const [, name] = FUNCTION.exec(sql) ?? [];
        // An existing function may be one of the project, which has replaced it.
        const isLost = name === undefined || lost.includes(name) || lost.includes(name.split(".")[0]!);
        if (!isLost && history === "platform") continue;
        const text = isLost ? sql : sql.replace(/^create or replace /, "create ");
        const error = await tryStatement(client, text);
        // The project may have dropped tables of the example application.
        if (error && history === "platform" && !IS_THERE.has(error.code) && !grantsDropped(sql, error)) throw error;
      }
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
  return lost;
}

/** True if a grant fails because a later migration has dropped one of the functions. */
function grantsDropped(sql: string, { code }: pg.DatabaseError): boolean {
  return code === "42883" && sql.startsWith("grant execute on function");
}

/** Errors of statements that create what is there already. */
const IS_THERE: ReadonlySet<string | undefined> = new Set([
  ...["42701", "42P06", "42P07", "42710", "42723", "42P16", "23505"],
]);

/** The migrations of the platform and of the example application that the database has. */
async function releasedMigrations(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<CommittedMigration[]> {
  const applied = new Set((await appliedMigrations(client)).map(({ hash }) => hash));
  const released = histories.filter(({ name }) => name !== "project");
  const migrations = (await Promise.all(released.map(committedMigrations)))
    .flat()
    .filter(({ hash }) => applied.has(hash));
  if (!(await hasMovedApiNames(client))) return migrations;
  return migrations.map((migration) => ({ ...migration, body: placeReleaseText(migration.body) }));
}
