import pg from "pg";
import { branchDatabase, withDatabase } from "#config";
import { type MigrateSettings, readMigrationState } from "#migrate";
import { placeApiNames, withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { checkAnonymization } from "./archive/anonymized-rows.ts";
import { copyDatabaseAttributes, copySchema } from "./archive/copy-schema.ts";
import { type BranchNote, branchComment, branchMarkOf, readBranchNote, unmarkedBranchOf } from "./branch-mark.ts";
import type { BranchOptions } from "./branch-options.ts";
import { loginRoleOf, type PostgresUrls } from "./served-postgres.ts";

/** `interrupted` means that the copying session has ended without a result. */
type BranchState = "complete" | "being copied" | "failed" | "interrupted";

type Branch = {
  readonly name: string;
  readonly bytes: number;
  readonly sessions: number;
  readonly state: BranchState;
  /** The reason why it failed. */
  readonly error: string | null;
  /** The objects that the owner was not permitted to create. */
  readonly warnings: readonly string[];
};

/** The method that copied the rows: by the file system, by Postgres, by one session that reads all or some of them, or none. */
type BranchCopy = "copied by the file system" | "copied" | "read" | "sampled" | "without rows";

/** Postgres truncates longer names. */
const MAX_NAME_BYTES = 63;
const OBJECT_IN_USE = "55006";
const INSUFFICIENT_PRIVILEGE = "42501";

/**
 * Returns the name of the session that copies a branch, which every role sees in the whole server. It lists the branch while
 * Postgres copies the files of its database, which is invisible until the copy ends.
 */
function claimOf({ oid }: OriginalDatabase, branch: string): string {
  return `branch ${branch} of ${oid}`;
}

type OriginalDatabase = { readonly name: string; readonly oid: number; readonly owner: string };

const ORIGINAL = `
  select datname as name, oid::pg_catalog.int8::pg_catalog.float8 as oid, pg_catalog.pg_get_userbyid(datdba) as owner
  from pg_catalog.pg_database where datname = $1`;

async function readOriginal(root: pg.ClientBase, database: string): Promise<OriginalDatabase> {
  const { rows } = await root.query<OriginalDatabase>(ORIGINAL, [database]);
  if (!rows[0]) throw new Error(`There is no database ${database}.`);
  return rows[0];
}

export function listBranches({ migrate }: PostgresUrls, database: string): Promise<Branch[]> {
  return withClient(migrate.rootUrl, async (root) => {
    const found = await findBranches(root, await readOriginal(root, database));
    return found.map(({ branch }) => branch);
  });
}

/** `database` is null while no database is visible to others. */
type FoundBranch = { readonly branch: Branch; readonly database: string | null };

type ListedDatabase = Pick<Branch, "name" | "bytes" | "sessions"> & {
  readonly database: string | null;
  readonly isClaimed: boolean;
  readonly comment: string | null;
};

const BRANCHES = `
  with branch as (
    select pg_catalog.substr(datname, pg_catalog.length($2) + 1) as name, d.oid, datname as database, comment
    from pg_catalog.pg_database d, pg_catalog.shobj_description(d.oid, 'pg_database') as comment
    where pg_catalog.split_part(comment, E'\\n', 1) = $1 and pg_catalog.starts_with(datname, $2)
    union all
    select pg_catalog.left(datname, -pg_catalog.length($3)), oid, datname, null
    from pg_catalog.pg_database where pg_catalog.right(datname, pg_catalog.length($3)) = $3
  ),
  claim as (
    select distinct pg_catalog.split_part(application_name, ' ', 2) as name
    from pg_catalog.pg_stat_activity where application_name = $4 || pg_catalog.split_part(application_name, ' ', 2) || $5
  )
  select coalesce(branch.name, claim.name) as name, database, comment, claim.name is not null as "isClaimed",
    coalesce(pg_catalog.pg_database_size(branch.oid), 0)::pg_catalog.float8 as bytes, (
      select pg_catalog.count(*)::pg_catalog.int4 from pg_catalog.pg_stat_activity a where a.datid = branch.oid) as sessions
  from branch full join claim on claim.name = branch.name order by coalesce(branch.name, claim.name) collate "C"`;

async function findBranches(root: pg.ClientBase, original: OriginalDatabase): Promise<FoundBranch[]> {
  const [beforeName, afterName] = claimOf(original, "\n").split("\n");
  const { rows } = await root.query<ListedDatabase>(BRANCHES, [
    branchMarkOf(original.name),
    branchDatabase(original.name, ""),
    unmarkedBranchOf(original.oid, ""),
    beforeName,
    afterName,
  ]);
  return rows.map(toFoundBranch);
}

function toFoundBranch({ name, database, bytes, sessions, isClaimed, comment }: ListedDatabase): FoundBranch {
  const { isIncomplete = false, error = null, warnings = [] } = comment === null ? UNMARKED : readBranchNote(comment);
  const unfinished = error !== null ? "failed" : isClaimed ? "being copied" : "interrupted";
  const state = isIncomplete ? unfinished : "complete";
  return { branch: { name, bytes, sessions, state, error, warnings }, database };
}

const UNMARKED: BranchNote = { isIncomplete: true };

type CreatedBranch = {
  readonly copy: BranchCopy;
  /** The objects that the owner was not permitted to create. */
  readonly warnings: readonly string[];
};

type CreationOptions = {
  /** Runs when the branch is listed. From then on the branch stays if its creation fails, with the reason. */
  readonly onListed?: () => void;
};

/** Creates the branch as a copy of the database, in which nothing is sent or scheduled. */
export async function createBranch(
  { directUrl, migrate }: PostgresUrls,
  name: string,
  options: BranchOptions,
  { onListed }: CreationOptions = {},
): Promise<CreatedBranch> {
  const database = await databaseOf(directUrl);
  const target = branchDatabase(database, name);
  const urls = { directUrl, targetUrl: withDatabase(directUrl, () => target) };
  return withClient(migrate.rootUrl, async (root) => {
    const original = await readOriginal(root, database);
    await refuseName(root, original, { name, target });
    if (options.isAnonymized) await withClient(directUrl, (client) => requireAnonymization(client, migrate));
    await root.query(
      "select pg_catalog.set_config('application_name', $1, false), pg_catalog.set_config('idle_session_timeout', '0', false)",
      [claimOf(original, name)],
    );
    const note = (content: BranchNote) => commentOn(root, target, branchComment(database, content));
    const isPartial = options.schemaOnly || options.sample !== null || options.isAnonymized;
    const unmarked = unmarkedBranchOf(original.oid, name);
    const copy = isPartial ? null : await copyFiles(root, original, unmarked);
    let isListed = false;
    try {
      if (copy === null) await createWithDefaultPrivileges(root, await loginRoleOf(directUrl), unmarked);
      await commentOn(root, unmarked, branchComment(database, UNMARKED));
      await root.query(`alter database ${pg.escapeIdentifier(unmarked)} rename to ${pg.escapeIdentifier(target)}`);
      isListed = true;
      onListed?.();
      const warnings = await fill(urls, copy, options);
      await note({ warnings });
      return { copy: copy ?? copyOf(options), warnings };
    } catch (error) {
      // The branch has no rows then: the transaction that copies them is rolled back.
      if (isListed && onListed) await note({ ...UNMARKED, error: (error as Error).message });
      else await dropDatabase(root, isListed ? target : unmarked);
      throw error;
    }
  });
}

async function dropDatabase(root: pg.ClientBase, name: string): Promise<void> {
  await root.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
}

type BranchUrls = Readonly<Record<"directUrl" | "targetUrl", string>>;

/** Returns the objects that the owner was not permitted to create. */
async function fill(
  { directUrl, targetUrl }: BranchUrls,
  copy: BranchCopy | null,
  { schemaOnly, sample, isAnonymized }: BranchOptions,
): Promise<readonly string[]> {
  if (copy !== null) await copyDatabaseAttributes(directUrl, targetUrl);
  const rows = { withRows: !schemaOnly, sample, isAnonymized };
  const warnings = copy === null ? await copySchema(directUrl, targetUrl, rows) : [];
  await withClient(targetUrl, silence);
  return warnings;
}

function copyOf({ schemaOnly, sample }: BranchOptions): BranchCopy {
  if (schemaOnly) return "without rows";
  return sample ? "sampled" : "read";
}

async function commentOn(root: pg.ClientBase, target: string, comment: string): Promise<void> {
  await root.query(`comment on database ${pg.escapeIdentifier(target)} is ${pg.escapeLiteral(comment)}`);
}

async function refuseName(
  root: pg.ClientBase,
  original: OriginalDatabase,
  { name, target }: { readonly name: string; readonly target: string },
): Promise<void> {
  const found = (await findBranches(root, original)).find(({ branch }) => branch.name === name);
  if (found) throw new Error(`There is a branch "${name}" already. It is ${found.branch.state}.`);
  const { rowCount } = await root.query("select from pg_catalog.pg_database where datname = $1", [target]);
  if (rowCount) throw new Error(`There is a database ${target} already.`);
  if (Buffer.byteLength(target) > MAX_NAME_BYTES)
    throw new Error(`Choose a shorter name: ${target} has more than ${MAX_NAME_BYTES} bytes.`);
}

/** Requires all migrations, because they add the tags of the service's own columns. */
async function requireAnonymization(client: pg.ClientBase, { histories }: MigrateSettings): Promise<void> {
  const { kind } = await readMigrationState(client, histories);
  if (!["current", "ahead", "foreign"].includes(kind))
    throw new Error(`Apply all migrations before you anonymize a branch: ${commandLine("migrate")}.`);
  await checkAnonymization(client);
}

/** The copy repeats only privileges that differ from the defaults of Postgres, in the transaction that creates all objects. */
async function createWithDefaultPrivileges(root: pg.ClientBase, owner: string, created: string): Promise<void> {
  const name = pg.escapeIdentifier(created);
  await root.query(`create database ${name} owner ${pg.escapeIdentifier(owner)}`);
  await root.query(`revoke all on database ${name} from public`);
  await root.query(`grant connect, temporary on database ${name} to public`);
}

/** Returns null if other sessions use the database, which Postgres does not copy then. */
async function copyFiles(
  root: pg.ClientBase,
  { name, owner }: OriginalDatabase,
  created: string,
): Promise<BranchCopy | null> {
  const names = [created, name, owner].map((each) => pg.escapeIdentifier(each));
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

/** Postgres supports this since version 18. Only an attempt shows that the file system supports it. */
function clones(root: pg.ClientBase): Promise<boolean> {
  return root.query("set file_copy_method = clone").then(
    () => true,
    () => false,
  );
}

/** Pending tasks would run twice, and schedules and webhooks affect others. */
const SILENCE = [
  ["content_service.tasks", "delete from content_service.tasks"],
  ["content_service.webhook_deliveries", "delete from content_service.webhook_deliveries"],
  ["api.schedules", "update api.schedules set is_enabled = false"],
  ["api.webhooks", "update api.webhooks set is_enabled = false"],
] as const;

async function silence(client: pg.ClientBase): Promise<void> {
  for (const [table, sql] of SILENCE) {
    const { rowCount } = await client.query("select where pg_catalog.to_regclass($1) is not null", [
      await placeApiNames(client, table),
    ]);
    if (rowCount) await client.query(await placeApiNames(client, sql));
  }
}

export async function dropBranch({ directUrl, migrate }: PostgresUrls, name: string): Promise<void> {
  const database = await databaseOf(directUrl);
  await withClient(migrate.rootUrl, async (root) => {
    const found = await findBranches(root, await readOriginal(root, database));
    const matching = found.filter(({ branch }) => branch.name === name);
    if (matching.length === 0) throw new Error(`There is no branch "${name}".`);
    for (const { branch, database: target } of matching) {
      if (branch.state === "being copied" || target === null)
        throw new Error(`The branch "${name}" is being copied. Drop it when it is complete.`);
      // The copying session may still run its last statement.
      if (branch.state === "interrupted") await dropDatabase(root, target);
      else if (branch.sessions > 0)
        throw new Error(`The branch "${name}" is used by ${branch.sessions} sessions. End them first.`);
      else await root.query(`drop database ${pg.escapeIdentifier(target)}`);
    }
  });
}

export function databaseOf(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>("select pg_catalog.current_database() as name");
    return rows[0]!.name;
  });
}
