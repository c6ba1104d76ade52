import pg from "pg";
import { branchDatabase, withDatabase } from "#config";
import { type MigrateSettings, readMigrationState, recreateDatabase } from "#migrate";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { checkAnonymization } from "./archive/anonymized-rows.ts";
import { copyDatabaseAttributes, copySchema } from "./archive/copy-schema.ts";
import type { SampleOptions } from "./archive/row-sample.ts";
import { branchMarkOf } from "./branch-mark.ts";
import type { PostgresUrls } from "./served-postgres.ts";

type Branch = { readonly name: string; readonly bytes: number; readonly sessions: number };

/** How the rows were copied: by the file system, by Postgres, by one session that reads all or some of them, or not. */
type BranchCopy = "copied by the file system" | "copied" | "read" | "sampled" | "without rows";

/** Postgres cuts longer names. */
const MAX_NAME_BYTES = 63;
const OBJECT_IN_USE = "55006";
const INSUFFICIENT_PRIVILEGE = "42501";

export function listBranches({ migrate }: PostgresUrls, database: string): Promise<Branch[]> {
  return withClient(migrate.rootUrl, async (client) => {
    const { rows } = await client.query<Branch & { database: string }>(
      `select datname as database, pg_catalog.pg_database_size(oid)::pg_catalog.float8 as bytes, (
         select pg_catalog.count(*)::pg_catalog.int4 from pg_catalog.pg_stat_activity where datid = d.oid) as sessions
       from pg_catalog.pg_database d where pg_catalog.shobj_description(oid, 'pg_database') = $1 order by 1`,
      [branchMarkOf(database)],
    );
    const prefix = branchDatabase(database, "").length;
    return rows.map(({ database: name, bytes, sessions }) => ({ name: name.slice(prefix), bytes, sessions }));
  });
}

export type BranchOptions = {
  readonly schemaOnly: boolean;
  /** Only these rows. */
  readonly sample: SampleOptions | null;
  /** With other values where the comments of columns say so. */
  readonly isAnonymized: boolean;
};

type CreatedBranch = {
  readonly copy: BranchCopy;
  /** What the owner was not permitted to create. */
  readonly warnings: readonly string[];
};

/** Creates the branch as a copy of the database, in which nothing is sent or scheduled. */
export async function createBranch(
  { directUrl, migrate }: PostgresUrls,
  name: string,
  { schemaOnly, sample, isAnonymized }: BranchOptions,
): Promise<CreatedBranch> {
  const database = await databaseOf(directUrl);
  const target = branchDatabase(database, name);
  const targetUrl = withDatabase(directUrl, () => target);
  const { rootUrl } = migrate;
  return withClient(rootUrl, async (root) => {
    const { rowCount } = await root.query("select from pg_catalog.pg_database where datname = $1", [target]);
    if (rowCount) throw new Error(`There is a database ${target} already.`);
    if (Buffer.byteLength(target) > MAX_NAME_BYTES)
      throw new Error(`Choose a shorter name: ${target} has more than ${MAX_NAME_BYTES} bytes.`);
    if (isAnonymized) await withClient(directUrl, (client) => requireAnonymization(client, migrate));
    const copy = schemaOnly || sample || isAnonymized ? null : await copyFiles(root, database, target);
    try {
      if (copy === null) await createWithDefaultPrivileges(root, target, { targetUrl, rootUrl });
      // At once, so that what an interrupted command leaves can be listed and dropped.
      await root.query(
        `comment on database ${pg.escapeIdentifier(target)} is ${pg.escapeLiteral(branchMarkOf(database))}`,
      );
      if (copy !== null) await copyDatabaseAttributes(directUrl, targetUrl);
      const rows = { withRows: !schemaOnly, sample, isAnonymized };
      const warnings = copy === null ? await copySchema(directUrl, targetUrl, rows) : [];
      await withClient(targetUrl, silence);
      return { copy: copy ?? (schemaOnly ? "without rows" : sample ? "sampled" : "read"), warnings };
    } catch (error) {
      await root.query(`drop database if exists ${pg.escapeIdentifier(target)} with (force)`);
      throw error;
    }
  });
}

/** Migrations bring the tags of the service's own columns. */
async function requireAnonymization(client: pg.ClientBase, { histories }: MigrateSettings): Promise<void> {
  const { kind } = await readMigrationState(client, histories);
  if (!["current", "ahead", "foreign"].includes(kind))
    throw new Error(`Apply all migrations before you anonymize a branch: ${commandLine("migrate")}.`);
  await checkAnonymization(client);
}

/** The copy repeats only what differs from the privileges that Postgres gives, in the transaction that creates all objects. */
async function createWithDefaultPrivileges(
  root: pg.ClientBase,
  target: string,
  { targetUrl, rootUrl }: { readonly targetUrl: string; readonly rootUrl: string },
): Promise<void> {
  await recreateDatabase(targetUrl, rootUrl);
  await root.query(`grant connect, temporary on database ${pg.escapeIdentifier(target)} to public`);
}

/** Null if other sessions use the database, which Postgres does not copy then. */
async function copyFiles(root: pg.ClientBase, database: string, target: string): Promise<BranchCopy | null> {
  const owner = "select pg_catalog.pg_get_userbyid(datdba) as name from pg_catalog.pg_database where datname = $1";
  const { rows } = await root.query<{ name: string }>(owner, [database]);
  const names = [target, database, rows[0]!.name].map((name) => pg.escapeIdentifier(name));
  const create = `create database ${names[0]} template ${names[1]} owner ${names[2]}`;
  try {
    if (await clones(root)) {
      const isCopied = await root.query(`${create} strategy file_copy`).then(
        () => true,
        (error: pg.DatabaseError) => (error.code === OBJECT_IN_USE ? Promise.reject(error) : false),
      );
      if (isCopied) return "copied by the file system";
    }
    await root.query(create);
    return "copied";
  } catch (error) {
    const { code, message } = error as pg.DatabaseError;
    if (code === OBJECT_IN_USE) return null;
    if (code === INSUFFICIENT_PRIVILEGE)
      throw new Error(`${message}. Allow the owner to create databases: alter role … createdb.`, { cause: error });
    throw error;
  }
}

/** Since Postgres 18. Whether the file system can is only known when it is tried. */
function clones(root: pg.ClientBase): Promise<boolean> {
  return root.query("set file_copy_method = clone").then(
    () => true,
    () => false,
  );
}

/** What waits in the queue would be done twice, and schedules and webhooks reach others. */
const SILENCE = [
  ["content_service.tasks", "delete from content_service.tasks"],
  ["content_service.webhook_deliveries", "delete from content_service.webhook_deliveries"],
  ["api.schedules", "update api.schedules set is_enabled = false"],
  ["api.webhooks", "update api.webhooks set is_enabled = false"],
] as const;

async function silence(client: pg.ClientBase): Promise<void> {
  for (const [table, sql] of SILENCE) {
    const { rowCount } = await client.query("select where pg_catalog.to_regclass($1) is not null", [table]);
    if (rowCount) await client.query(sql);
  }
}

export async function dropBranch(postgres: PostgresUrls, name: string): Promise<void> {
  const database = await databaseOf(postgres.directUrl);
  const branches = await listBranches(postgres, database);
  const branch = branches.find((each) => each.name === name);
  if (!branch) throw new Error(`There is no branch "${name}".`);
  if (branch.sessions > 0)
    throw new Error(`The branch "${name}" is used by ${branch.sessions} sessions. End them first.`);
  const target = branchDatabase(database, name);
  await withClient(postgres.migrate.rootUrl, (root) => root.query(`drop database ${pg.escapeIdentifier(target)}`));
}

export function databaseOf(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>("select pg_catalog.current_database() as name");
    return rows[0]!.name;
  });
}
