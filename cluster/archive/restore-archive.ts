import pg from "pg";
import type { FileStore } from "#files";
import {
  committedMigrations,
  type MigrateSettings,
  type MigrationHistory,
  type ReleaseMigrateSettings,
  releaseHistories,
  runMigrations,
  withMigrationLock,
  withScratchDatabase,
} from "#migrate";
import { withClient, withServiceClient } from "#postgres/client";
import {
  type ArchivedMembership,
  type ArchivedRole,
  type ArchivedStatement,
  type ArchiveHeader,
  type ArchiveLine,
  type ArchiveSummary,
  type ArchiveTable,
  inspectArchive,
  readArchive,
} from "./content/archive-format.ts";
import { FileRestorer } from "./content/archived-files.ts";
import { allTables, type ContentTable, setPortableFormats } from "./content/content-tables.ts";
import { RowInserter, setSequence } from "./content/restore-rows.ts";
import { archiveLines } from "./write-archive.ts";

/** Insufficient privilege. */
const NOT_PERMITTED = "42501";
/** Undefined object: a statement about an object that could not be created. */
const UNDEFINED_OBJECT = "42704";
/** Invalid parameter value, such as a compression that the server was built without. */
const INVALID_VALUE = "22023";
/** A parameter that is set when the server starts. */
const FIXED_PARAMETER = "55P02";
const UNSUPPORTED = "0A000";
const UNDEFINED_FUNCTION = "42883";
const AMBIGUOUS_FUNCTION = "42725";
/** Errors for an object that another version of its extension, or of Postgres, lacks: the objects of the backup exist by then. */
const UNDEFINED = [UNDEFINED_OBJECT, UNDEFINED_FUNCTION, "42P01", "42703", "3F000"];
/** Out of memory: the server's lock table is full. */
const OUT_OF_MEMORY = "53200";
/** Only superusers may create some of these, and the service works without them. */
const OPTIONAL_OBJECT = /^(event trigger|publication) /;
const SETTINGS_OBJECT = "settings of the database";
const PRIVILEGES_OBJECT = /^privileges of /;
/** A setting in the statement that creates a function. */
const FUNCTION_SETTING = /^ SET \S+ TO [^\n]*\n/gm;
const NAMED_PARAMETER = /parameter "([^"]+)"/;
/** The name of a routine without the arguments. */
const NAME_OF_ROUTINE = /^routine (?:"(?:[^"]|"")*"|[^("])+(?=\()/;
/** A column in the statement that creates a table, which has a line for each column. */
const LZ4_COLUMN = /^( {2}(?:"(?:[^"]|"")+"|[^\s"]+) [^\n]*?) compression lz4/gm;

type RestoreOptions = {
  /** The file store for the contents of objects. */
  readonly store?: FileStore;
};

export type RestoreResult = ArchiveSummary & {
  /** The objects that the role was not permitted to create. */
  readonly warnings: readonly string[];
};

/**
 * Restores a backup into an empty database, in one transaction, then runs the migrations of this release that are later. Checks
 * as much as possible before it changes anything.
 */
export async function restoreArchive(
  file: string,
  input: ReleaseMigrateSettings,
  { store }: RestoreOptions = {},
): Promise<RestoreResult> {
  const settings = { ...input, histories: input.histories ?? releaseHistories() };
  const result = await restoreAsArchived(file, settings, store);
  // A database that was never migrated is served as it is.
  if (result.header.migrations.length > 0) await runMigrations({ name: "migrate" }, settings);
  return result;
}

/** Restores a backup without running later migrations. */
async function restoreAsArchived(file: string, settings: MigrateSettings, store?: FileStore): Promise<RestoreResult> {
  const archive = await inspectArchive(file);
  await withServiceClient(settings.url, refuseUnlessEmpty);
  await requireKnownMigrations(archive.header, settings.histories);
  const warnings = await withMigrationLock(settings.url, () =>
    withClient(settings.url, (client) => restoreLines(client, readArchive(file), store)),
  );
  return { ...archive, warnings };
}

async function refuseUnlessEmpty(client: pg.ClientBase): Promise<void> {
  const tables: ContentTable[] = [];
  // The tables of an extension that was installed before exist already; only tables with rows of users are not empty.
  for (const table of await allTables(client))
    if (!table.isOfExtension || (await hasRows(client, table))) tables.push(table);
  if (tables.length === 0) return;
  throw new Error(
    `The database is not empty: it has ${tables.length} tables, for example ${tables[0]!.table}. Nothing was changed. ` +
      "Restore into a new DATA_DIR or a new database.",
  );
}

async function hasRows(client: pg.ClientBase, { table, condition }: ContentTable): Promise<boolean> {
  const { rowCount } = await client.query(`select from only ${table} ${condition} limit 1`);
  return rowCount !== 0;
}

/** Rejects the backup of a later release, which this release cannot serve. The project's own migrations need not be here. */
async function requireKnownMigrations(
  { migrations }: ArchiveHeader,
  histories: readonly MigrationHistory[],
): Promise<void> {
  const committed = (await Promise.all(histories.map(committedMigrations))).flat();
  const released = new Set(committed.map(({ history, hash }) => `${history} ${hash}`));
  const unknown = migrations.filter(
    ({ history, hash }) =>
      history !== "project" && histories.some(({ name }) => name === history) && !released.has(`${history} ${hash}`),
  );
  if (unknown.length === 0) return;
  const list = unknown.map(({ history, name }) => `${history}/${name}`).join(", ");
  throw new Error(
    `The backup has migrations that this release does not have: ${list}. Restore it with the release that made it. Nothing was changed.`,
  );
}

/** Creates the objects and rows of the lines, in one transaction. Returns warnings. */
export async function restoreLines(
  client: pg.ClientBase,
  lines: AsyncIterable<ArchiveLine>,
  store?: FileStore,
): Promise<string[]> {
  await setPortableFormats(client);
  await client.query("begin");
  const restorer = new DatabaseRestorer(client);
  let rows: RowInserter | null = null;
  let largeObject: { readonly oid: string; offset: number } | null = null;
  const contents = store ? new FileRestorer(store) : null;
  let isFile = false;
  for await (const line of lines) {
    if (typeof line === "string") {
      if (isFile) await contents?.add(line);
      else if (largeObject) largeObject.offset += await writeLargeObject(client, largeObject, line);
      else await rows!.add(line);
      continue;
    }
    await rows?.flush();
    largeObject = null;
    isFile = "file" in line;
    if ("file" in line) await contents?.start(line.file);
    else if ("role" in line) await restorer.createRole(line);
    else if ("member" in line) await restorer.grantMembership(line);
    else if ("statement" in line) await restorer.run(line);
    else if ("sequence" in line) await setSequence(client, line);
    else if ("largeObject" in line) largeObject = { oid: line.largeObject, offset: 0 };
    else if ("table" in line) {
      rows ??= new RowInserter(client, new Map((await allTables(client)).map((table) => [table.table, table])));
      await rows.startTable(line);
    }
  }
  await contents?.end();
  await client.query("commit");
  await client.query("analyze");
  return restorer.warnings;
}

async function writeLargeObject(
  client: pg.ClientBase,
  { oid, offset }: { readonly oid: string; readonly offset: number },
  content: string,
): Promise<number> {
  await client.query("select pg_catalog.lo_put($1, $2, decode($3, 'base64'))", [oid, offset, content]);
  return Buffer.byteLength(content, "base64");
}

/** Runs the statements of a backup in a transaction. */
class DatabaseRestorer {
  readonly warnings: string[] = [];
  readonly #client: pg.ClientBase;

  constructor(client: pg.ClientBase) {
    this.#client = client;
  }

  /** Roles belong to the server: an existing role keeps its attributes and settings. */
  async createRole({ role, attributes, privileges, statements }: ArchivedRole): Promise<void> {
    const { rowCount } = await this.#client.query("select from pg_roles where rolname = $1", [role]);
    if (rowCount) return;
    const name = pg.escapeIdentifier(role);
    await this.run({ object: `role ${role}`, statement: `create role ${name} ${attributes}` });
    for (const privilege of privileges) {
      await this.#tryRun({ object: `${privilege} of role ${role}`, statement: `alter role ${name} ${privilege}` });
    }
    for (const statement of statements) await this.#trySetting({ object: `setting of role ${role}`, statement });
  }

  async grantMembership(membership: ArchivedMembership): Promise<void> {
    const { of, member, admin, inherit, set } = membership;
    if (member === null) return this.#becomeMember(membership);
    const group = pg.escapeIdentifier(of);
    const { rows } = await this.#client.query<{ hasOptions: boolean; isGranted: boolean }>(
      `select current_setting('server_version_num')::int >= 160000 as "hasOptions", exists (
         select from pg_auth_members
         where roleid = to_regrole($1) and pg_auth_members.member = to_regrole($2) and admin_option >= $3
       ) as "isGranted"`,
      [group, pg.escapeIdentifier(member), admin],
    );
    const { hasOptions, isGranted } = rows[0]!;
    if (isGranted) return;
    const inheritance = inherit === undefined ? "" : `, inherit ${inherit}, set ${set}`;
    const options = hasOptions ? ` with admin ${admin}${inheritance}` : admin ? " with admin option" : "";
    await this.run({
      object: `membership in ${of}`,
      statement: `grant ${group} to ${pg.escapeIdentifier(member)}${options}`,
    });
  }

  /** The restoring role administers the roles that it has created; a superuser needs no membership, nor does a member. */
  async #becomeMember({ of }: ArchivedMembership): Promise<void> {
    const isMember = "select where pg_catalog.pg_has_role(session_user, pg_catalog.to_regrole($1), 'member')";
    const { rowCount } = await this.#client.query(isMember, [pg.escapeIdentifier(of)]);
    if (rowCount) return;
    await this.#tryRun({
      object: `membership in ${of}`,
      statement: `grant ${pg.escapeIdentifier(of)} to session_user`,
    });
  }

  async run(created: ArchivedStatement): Promise<void> {
    const owner = newOwnerOf(created.statement);
    if (OPTIONAL_OBJECT.test(created.object)) await this.#tryRun(created);
    else if (created.object === SETTINGS_OBJECT) await this.#trySetting(created);
    else if (PRIVILEGES_OBJECT.test(created.object)) await this.#changePrivileges(created);
    else if (created.statement.match(LZ4_COLUMN)) await this.#createCompressed(created);
    else if (created.statement.match(FUNCTION_SETTING)) await this.#createWithSettings(created);
    else if (owner !== null) await this.#changeOwner(created, owner).catch((error: Error) => fail(created, error));
    else await this.#client.query(created.statement).catch((error: Error) => fail(created, error));
  }

  async #changeOwner({ statement }: ArchivedStatement, owner: string): Promise<void> {
    if (await this.#attempt(statement, [NOT_PERMITTED])) await withOwnerInSchemas(this.#client, owner, statement);
  }

  /** Parameters and their values differ between majors and builds of Postgres. */
  #trySetting(created: ArchivedStatement): Promise<void> {
    return this.#tryRun(created, [NOT_PERMITTED, UNDEFINED_OBJECT, INVALID_VALUE, FIXED_PARAMETER]);
  }

  /** A function of an extension may have other arguments in another version: the privileges are then granted by its name. */
  async #changePrivileges(created: ArchivedStatement): Promise<void> {
    const refused = await this.#attemptOrFail(created, UNDEFINED);
    if (!refused) return;
    const routine = created.object.replace(PRIVILEGES_OBJECT, "");
    const name = NAME_OF_ROUTINE.exec(routine)?.[0];
    if (refused.code === UNDEFINED_FUNCTION && name !== undefined) {
      const statement = created.statement.replace(routine, () => name);
      if (!(await this.#attempt(statement, [...UNDEFINED, AMBIGUOUS_FUNCTION]))) return;
    }
    this.#warn(created, refused);
  }

  /** A server may be built without lz4; the values are the same. */
  async #createCompressed(created: ArchivedStatement): Promise<void> {
    const refused = await this.#attemptOrFail(created, [UNSUPPORTED]);
    if (!refused) return;
    const { object, statement } = created;
    const plain = { object, statement: statement.replaceAll(LZ4_COLUMN, "$1") };
    await this.#client.query(plain.statement).catch((error: Error) => fail(plain, error));
    this.warnings.push(
      `${object} has columns with the compression lz4, which this server does not have. They use pglz.`,
    );
  }

  /** Leaves out the settings that the server does not have. */
  async #createWithSettings(created: ArchivedStatement): Promise<void> {
    const refused = await this.#attemptOrFail(created, [UNDEFINED_OBJECT, INVALID_VALUE]);
    if (!refused) return;
    const { object, statement } = created;
    const parameter = NAMED_PARAMETER.exec(refused.message)?.[1];
    const setting = statement.match(FUNCTION_SETTING)?.find((line) => line.startsWith(` SET ${parameter} `));
    if (setting === undefined) fail(created, refused);
    this.#warn({ object: `setting of ${object}`, statement }, refused);
    await this.#createWithSettings({ object, statement: statement.replace(setting, "") });
  }

  /** Runs a statement, and leaves a warning if the privilege is missing. */
  async #tryRun(created: ArchivedStatement, tolerated = [NOT_PERMITTED, UNDEFINED_OBJECT]): Promise<void> {
    const refused = await this.#attemptOrFail(created, tolerated);
    if (refused) this.#warn(created, refused);
  }

  #warn({ object }: ArchivedStatement, { message }: Error): void {
    this.warnings.push(`${object} is not restored: ${message}`);
  }

  #attemptOrFail(created: ArchivedStatement, tolerated: readonly string[]): Promise<pg.DatabaseError | null> {
    return this.#attempt(created.statement, tolerated).catch((error: Error) => fail(created, error));
  }

  /** Returns an error with one of these codes; the transaction then continues without the statement. */
  async #attempt(statement: string, tolerated: readonly string[]): Promise<pg.DatabaseError | null> {
    try {
      await this.#client.query(`savepoint attempt; ${statement};\nrelease savepoint attempt`);
      return null;
    } catch (error) {
      const refused = error as pg.DatabaseError;
      if (!tolerated.includes(refused.code ?? "")) throw error;
      await this.#client.query("rollback to savepoint attempt; release savepoint attempt");
      return refused;
    }
  }
}

function fail({ object }: ArchivedStatement, error: Error): never {
  const isOutOfLocks = (error as pg.DatabaseError).code === OUT_OF_MEMORY;
  const advice = isOutOfLocks
    ? " Set max_locks_per_transaction of the server to 2048, for so many tables, and restart it."
    : "";
  throw new Error(`${object} cannot be restored: ${error.message}. Nothing was changed.${advice}`, { cause: error });
}

/**
 * Restores a backup into the empty database, makes a backup of the result, and compares both line by line. Throws if they differ. Only
 * rows are compared if the backup is from another major version, which formats definitions differently, or if something was left out.
 */
export async function checkArchive(file: string, settings: MigrateSettings): Promise<RestoreResult> {
  const result = await restoreAsArchived(file, settings);
  await withClient(settings.url, async (client) => {
    const restored = archiveLines(client);
    const { value: header } = await restored.next();
    const isSame = majorOf(header) === majorOf(result.header) && result.warnings.length === 0;
    const isCompared = (line: ArchiveLine) => isContent(line) || (isSame && isDefinition(line));
    await compareLines(filterLines(readArchive(file), isCompared), filterLines(restored, isCompared));
  });
  return result;
}

function majorOf(header: ArchiveLine | undefined): number {
  return Number.parseInt(typeof header === "object" && "postgres" in header ? header.postgres : "", 10);
}

function isContent(line: ArchiveLine): boolean {
  return typeof line === "string" || "table" in line || "sequence" in line || "largeObject" in line || "rows" in line;
}

/** Roles exist on the server, and privileges on the database itself, independently of a backup. */
function isDefinition(line: ArchiveLine): boolean {
  return typeof line === "object" && "statement" in line && line.object !== "privileges of database";
}

async function* filterLines(
  lines: AsyncIterable<ArchiveLine>,
  isWanted: (line: ArchiveLine) => boolean,
): AsyncGenerator<ArchiveLine> {
  let isFile = false;
  for await (const line of lines) {
    if (typeof line !== "string") isFile = "file" in line;
    // Contents are compared with their digests when they are restored.
    if (!isFile && isWanted(line)) yield line;
  }
}

async function compareLines(
  archived: AsyncGenerator<ArchiveLine>,
  restored: AsyncGenerator<ArchiveLine>,
): Promise<void> {
  let table: ArchiveTable | null = null;
  // A table that inherits has the columns that were added to its parent before its own.
  let hasOtherOrder = false;
  for (;;) {
    const [{ value: expected }, { value: found }] = [await archived.next(), await restored.next()];
    if (expected === undefined && found === undefined) return;
    if (isTable(expected)) {
      table = expected;
      hasOtherOrder = isTable(found) && isReordered(expected, found);
      if (hasOtherOrder) continue;
    }
    if (hasOtherOrder && typeof expected === "string" && typeof found === "string") continue;
    if (comparable(expected) === comparable(found)) continue;
    const [one, other] = [JSON.stringify(expected), JSON.stringify(found)];
    const place =
      typeof expected === "string" ? `A row of ${table?.table ?? "a large object"}` : "The restored database";
    throw new Error(
      `${place} differs from the backup.\nin the backup: ${excerpt(one)}\nrestored:      ${excerpt(other)}`,
    );
  }
}

/**
 * The text that Postgres adds when it formats an expression a second time: casts, parentheses, and the names of the output
 * columns of all branches of a `union`.
 */
const ADDED = [
  / AS ("(?:[^"]|"")+"|\w+)/g,
  /::("[^"]*"|\w+)(\.("[^"]*"|\w+))?( varying| precision| with(out)? time zone)?(\(\d+(,\d+)?\))?(\[\])*/g,
  /[\s()]/g,
];

function comparable(line: ArchiveLine | undefined): string | undefined {
  if (typeof line !== "object" || !("statement" in line)) return JSON.stringify(line);
  return JSON.stringify({
    ...line,
    statement: ADDED.reduce((text, added) => text.replaceAll(added, ""), line.statement),
  });
}

function isTable(line: ArchiveLine | undefined): line is ArchiveTable {
  return typeof line === "object" && "table" in line;
}

function isReordered(one: ArchiveTable, other: ArchiveTable): boolean {
  return (
    one.table === other.table &&
    String(one.columns) !== String(other.columns) &&
    String([...one.columns].sort()) === String([...other.columns].sort())
  );
}

const EXCERPT_CHARACTERS = 2_000;

function excerpt(line: string | undefined): string {
  return line === undefined ? "nothing" : line.slice(0, EXCERPT_CHARACTERS);
}

/** Restores a backup into the server's scratch database, compares both, and drops the database. Throws if they differ. */
export function checkInScratch(file: string, settings: MigrateSettings): Promise<RestoreResult> {
  const { shadowUrl, rootUrl } = settings;
  return withScratchDatabase(shadowUrl, rootUrl, () => checkArchive(file, { ...settings, url: shadowUrl }));
}

const OWNER_CHANGE = /^alter .* owner to (\S+|"(?:[^"]|"")+")$/s;

/** Returns the quoted role that a statement makes the owner of an object; null for other statements. */
function newOwnerOf(statement: string): string | null {
  return OWNER_CHANGE.exec(statement)?.[1] ?? null;
}

const SCHEMAS_WITHOUT = `
  select pg_catalog.quote_ident(nspname) as name from pg_catalog.pg_namespace
  where nspname !~ '^pg_' and pg_catalog.pg_has_role(current_user, nspowner, 'usage')
    and not pg_catalog.has_schema_privilege($1::pg_catalog.regrole, oid, 'create')`;

/**
 * Runs the statement while the new owner may create objects in the schemas of the current role, which Postgres requires of an owner unless
 * a superuser chooses it.
 */
async function withOwnerInSchemas(client: pg.ClientBase, owner: string, statement: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(SCHEMAS_WITHOUT, [owner]);
  const schemas = rows.map(({ name }) => name).join(", ");
  if (schemas) await client.query(`grant create on schema ${schemas} to ${owner}`);
  await client.query(statement);
  if (schemas) await client.query(`revoke create on schema ${schemas} from ${owner}`);
}
