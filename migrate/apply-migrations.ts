import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import type pg from "pg";
import { parseServers } from "#config/connection-string";
import {
  findServer,
  hasMovedApiNames,
  makeRoomForApiSchema,
  makesApiSchema,
  moveApiObjects,
  SAFE_SEARCH_PATH,
  withClient,
} from "#postgres/client";
import { commandLine } from "#runtime";
import { citusSettings, prepareNodes, stayOnCoordinator } from "./citus-nodes.ts";
import {
  type CommittedMigration,
  committedMigrations,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
} from "./committed-migrations.ts";
import { type CurrentFile, readCurrentFiles, repeatableHintOf } from "./current-files.ts";
import { setDefaultPrivileges } from "./default-privileges.ts";
import { type KeptTable, keepRows, type ReportLine, restoreKeptRows } from "./kept-rows.ts";
import {
  explainHeldReads,
  explainTimeout,
  findWaiting,
  isLockTimeout,
  type LockLimits,
  NO_LOCK_LIMITS,
  retryForLocks,
} from "./lock-limits.ts";
import type { MigrationSession, SeenLocks } from "./lock-watch.ts";
import { restoreLostObjects } from "./lost-objects.ts";
import { findErrorOffset, MigrationError, type MigrationSource } from "./migration-error.ts";
import { readProgress, recordProgress } from "./migration-progress.ts";
import { createRecord, explainDivergence, readMigrationState } from "./migration-state.ts";
import { placeReleaseText } from "./release-text.ts";
import { describeCommitted, explainTransactionError, runTransactions, TransactionError } from "./run-transactions.ts";
import { runsWithoutTransaction, splitStatements } from "./split-statements.ts";
import { endsTransactions, splitTransactions } from "./split-transactions.ts";

type RunnerHistory = MigrationHistory & {
  readonly searchPath: string;
  readonly lockTimeoutMs: number;
  /** Further settings of the session. */
  readonly settings: Readonly<Record<string, string>>;
};

/** The message to the child process. */
export type RunnerJob = MigrationSession & {
  readonly url: string;
  readonly rootUrl: string;
  /** The histories in the order in which they are applied; one can occur several times, with more migrations each time. */
  readonly histories: readonly RunnerHistory[];
};

/** The child process's message about an error of Postgres or graphile-migrate. */
export type RunnerError = {
  readonly history: MigrationHistory["name"];
  /** The fields of the Postgres error. */
  readonly error: { readonly message: string } & Record<string, unknown>;
};

/** The runner has the extension of this file: `.ts`, or `.js` in a build. */
const RUNNER = join(import.meta.dirname, `runner${extname(import.meta.filename)}`);

type ApplyOptions = { readonly limits?: LockLimits | undefined; readonly report?: ReportLine | undefined };

/** Applies the pending committed migrations, history by history. */
export async function applyCommitted(
  url: string,
  rootUrl: string,
  histories: readonly MigrationHistory[],
  { limits = NO_LOCK_LIMITS, report = () => {} }: ApplyOptions = {},
): Promise<void> {
  const { applied, searchPath, isApiMoved, isCoordinator } = await withClient(url, (client) =>
    onPathOf({ name: "platform" }, client, async (ofDatabase) => {
      const isCoordinator = await stayOnCoordinator(client);
      const state = await readMigrationState(client, histories);
      if (state.kind === "diverged") throw new Error(explainDivergence(state));
      await createRecord(client);
      await restoreLostObjects(client, histories);
      const applied = await countApplied(client);
      await leaveApiSchema(client, histories, applied);
      const isApiMoved = await isApiSchemaTaken(client, applied);
      return { applied, searchPath: ofDatabase, isApiMoved, isCoordinator };
    }),
  );
  const steps = orderSteps(await Promise.all(histories.map(readHistory)), applied);
  requireOrder(steps, applied);
  const hasNodes = isCoordinator && histories.some(({ name }) => name === "platform");
  const partial = await mkdtemp(join(tmpdir(), "migrations-"));
  try {
    const folders = await Promise.all(
      steps
        // graphile-migrate creates the folder of a history if there is none, so histories without migrations are left out.
        .filter(({ history, count, isLast }) => count > 0 && (isLast || (applied.get(history.name) ?? 0) < count))
        .map(async (step, index) => ({
          ...(await folderOf(step, join(partial, String(index)), isApiMoved)),
          makesApiSchema: step.makesApiSchema,
          searchPath: searchPathOf(step.history, searchPath),
          settings: citusSettings(step.history.name, isCoordinator),
          lockTimeoutMs: step.waitsFreely ? 0 : limits.lockTimeoutMs,
          form: step.form,
          migration: step.migrations[step.count - 1]!,
        })),
    );
    for (const { form, folders: histories } of groupFolders(folders)) {
      if (hasNodes) await prepareNodes(url, histories[0]!.name);
      if (histories[0]!.makesApiSchema) await withClient(url, moveApiObjects);
      if (form === "several") {
        await applyTransactions(url, histories[0]!, { limits, report });
        continue;
      }
      const runLimits = form === "one" ? limits : { ...limits, lockRetries: 0, maxHoldMs: 0 };
      const failed = await retryForLocks(url, runLimits, report, (session) =>
        runInChildProcess({ ...session, ...onOneServer(url, rootUrl), histories }),
      );
      if (failed) throw await toMigrationError(url, histories, { ...failed, limits: runLimits });
    }
    if (hasNodes && folders.at(-1)?.name !== "project") await prepareNodes(url, "project");
  } finally {
    await rm(partial, { recursive: true });
  }
}

/**
 * A release qualifies all names but Postgres's, and `public` may have functions, operators and types with names of Postgres's: the owner
 * would call them, and the migrations would bind to them. A project's migrations rely on the search path of its database.
 */
function searchPathOf({ name }: Pick<MigrationHistory, "name">, ofDatabase: string): string {
  return name === "project" ? ofDatabase : SAFE_SEARCH_PATH;
}

/** Runs the work with the search path of the history's migrations, and passes the database's search path to it. */
export async function onPathOf<T>(
  history: Pick<MigrationHistory, "name">,
  client: pg.ClientBase,
  work: (ofDatabase: string) => Promise<T>,
): Promise<T> {
  const { rows } = await client.query<{ path: string }>("select pg_catalog.current_setting('search_path') as path");
  const ofDatabase = rows[0]!.path;
  const setPath = (path: string) => client.query("select pg_catalog.set_config('search_path', $1, false)", [path]);
  await setPath(searchPathOf(history, ofDatabase));
  try {
    return await work(ofDatabase);
  } finally {
    await setPath(ofDatabase);
  }
}

type CommittedHistory = { readonly history: MigrationHistory; readonly migrations: readonly CommittedMigration[] };

/**
 * The number of a migration's transactions: one, which leaves nothing behind when it is stopped; none, after `--! no-transaction`; or several,
 * of which the committed ones stay. A migration that changes its session runs like several.
 */
type MigrationForm = "one" | "none" | "several";

/** Applies the first migrations of a history. */
type MigrationStep = CommittedHistory & {
  readonly count: number;
  readonly isLast: boolean;
  readonly form: MigrationForm;
  /** True if no other session waits behind the migration while it waits, and stopping it would leave something behind. */
  readonly waitsFreely: boolean;
  /** True if the last migration creates a schema `api` of the project. */
  readonly makesApiSchema: boolean;
  /** The step that must not be exceeded when this one is still to be applied. */
  readonly previous: MigrationStep | null;
};

/**
 * A migration that changes objects on which another history builds comes after the earlier migrations of that history, also
 * in an empty database: `--! after content/000009`. The line has no effect if the other history is not applied.
 */
const AFTER = /^--! after (\w+)\/(\d+)$/m;

async function readHistory(history: MigrationHistory): Promise<CommittedHistory> {
  return { history, migrations: await committedMigrations(history) };
}

/** Statements without a transaction that others wait for, including `detach partition … concurrently`. */
const IS_WAITED_FOR = /^(alter|cluster|vacuum|reindex(?!.*\bconcurrently\b))\b/is;

function runsFreely(body: string): boolean {
  return !IS_WAITED_FOR.test(splitStatements(body)[0]?.sql ?? "");
}

/** graphile-migrate would record the migration as the role that it becomes, or by a setting that it resets. Matches within blocks too. */
const CHANGES_SESSION =
  /\b(?:(?:reset|discard)\s+all|set\s+(?:(?:session|local)\s+)?(?:role|session\s+authorization))\b/i;

function formOf({ history, body }: CommittedMigration): MigrationForm {
  if (runsWithoutTransaction(body.trimStart())) return "none";
  // Migrations of a release have one transaction.
  return history === "project" && (endsTransactions(body) || CHANGES_SESSION.test(body)) ? "several" : "one";
}

/** Groups successive migrations of the same form and settings; each migration of several transactions is alone. */
function groupFolders<T extends Pick<MigrationStep, "form" | "makesApiSchema"> & Pick<RunnerHistory, "settings">>(
  folders: readonly T[],
): { readonly form: MigrationForm; readonly folders: T[] }[] {
  const groups: { form: MigrationForm; folders: T[] }[] = [];
  for (const folder of folders) {
    const last = groups.at(-1);
    const isAlike = last?.form === folder.form && last.folders[0]!.settings === folder.settings;
    if (isAlike && folder.form !== "several" && !folder.makesApiSchema) last.folders.push(folder);
    else groups.push({ form: folder.form, folders: [folder] });
  }
  return groups;
}

/** Applied migrations count as form "one": their form does not matter any more, so it is not read. */
function orderSteps(histories: readonly CommittedHistory[], applied: ReadonlyMap<string, number>): MigrationStep[] {
  return histories.flatMap((committed) => {
    const part = {
      ...committed,
      ...{ isLast: false, form: "one" as const, waitsFreely: false, makesApiSchema: false, previous: null },
    };
    const steps = committed.migrations.flatMap((migration, index): MigrationStep[] => {
      const { body } = migration;
      const before = { ...part, count: index };
      const form = index < (applied.get(committed.history.name) ?? 0) ? "one" : formOf(migration);
      const waitsFreely = form === "none" && runsFreely(body);
      const makesSchema = migration.history === "project" && makesApiSchema(body);
      const single = { ...part, count: index + 1, form, waitsFreely, makesApiSchema: makesSchema };
      const alone = form === "one" && !makesSchema ? [] : [before, single];
      const [, name, number] = AFTER.exec(body) ?? [];
      const other = histories.find(({ history }) => history.name === name);
      if (!other) return alone;
      const count = other.migrations.filter((earlier) => Number.parseInt(earlier.name, 10) <= Number(number)).length;
      return [before, { ...part, ...other, count, previous: before }, ...alone];
    });
    return [...steps, { ...part, count: committed.migrations.length, isLast: true }];
  });
}

/** The migrations that the database does not have, in the order in which they are applied. */
export async function pendingMigrations(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<CommittedMigration[]> {
  const applied = new Map(await countApplied(client));
  return orderSteps(await Promise.all(histories.map(readHistory)), applied).flatMap(
    ({ history, migrations, count }) => {
      const from = applied.get(history.name) ?? 0;
      if (count <= from) return [];
      applied.set(history.name, count);
      return migrations.slice(from, count);
    },
  );
}

/** Throws if a history is added too late: its migrations would meet later changes of other histories. */
function requireOrder(steps: readonly MigrationStep[], applied: ReadonlyMap<string, number>): void {
  const countOf = ({ history }: MigrationStep) => applied.get(history.name) ?? 0;
  const late = steps.find((step) => {
    const { previous } = step;
    return previous !== null && countOf(step) < step.count && countOf(previous) > previous.count;
  });
  if (!late) return;
  throw new Error(
    `The migrations of "${late.history.name}" cannot be added to this database, which has later ones of the platform. ` +
      "Choose BASE_SCHEMA before the first start; nothing was changed.",
  );
}

/** Makes a folder with only the first migrations of a history: graphile-migrate applies all that it finds. */
export async function copyFirst(
  { history, migrations, count }: CommittedHistory & { readonly count: number },
  folder: string,
  toText: (text: string) => string = (text) => text,
): Promise<MigrationHistory> {
  const committed = join(folder, "committed");
  await mkdir(committed, { recursive: true });
  await Promise.all(
    migrations
      .slice(0, count)
      .map(async ({ file }) => writeFile(join(committed, basename(file)), toText(await readFile(file, "utf8")))),
  );
  return { name: history.name, folder };
}

/** The folder of the history, or a copy if the step has fewer migrations or other texts. */
async function folderOf(step: MigrationStep, copy: string, isApiMoved: boolean): Promise<MigrationHistory> {
  if (isApiMoved && step.history.name !== "project") return copyFirst(step, copy, toMovedFile);
  return step.isLast ? step.history : copyFirst(step, copy);
}

/** Keeps the hash of the file, by which databases know it. */
function toMovedFile(text: string): string {
  const moved = placeReleaseText(text);
  return moved === text ? text : moved.replace(/^--! Hash:.*\n/m, "$&--! AllowInvalidHash\n");
}

/** Moves the release's objects out of schema `api` if a project has shared it. */
async function leaveApiSchema(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
  applied: ReadonlyMap<string, number>,
): Promise<void> {
  const project = histories.find(({ name }) => name === "project");
  const migrations = project ? await committedMigrations(project) : [];
  if (migrations.slice(0, applied.get("project") ?? 0).some(({ body }) => makesApiSchema(body)))
    await moveApiObjects(client);
}

/** True if schema `api` is the project's, even if the schema existed before the first migration. */
async function isApiSchemaTaken(client: pg.ClientBase, applied: ReadonlyMap<string, number>): Promise<boolean> {
  if ((applied.get("platform") ?? 0) > 0) return hasMovedApiNames(client);
  const { rowCount } = await client.query("select from pg_catalog.pg_namespace where nspname = 'api'");
  return rowCount === 1;
}

async function countApplied(client: pg.ClientBase): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ history: string; count: number }>(
    "select history, pg_catalog.count(*)::int as count from graphile_migrate.histories group by history",
  );
  return new Map(rows.map(({ history, count }) => [history, count]));
}

/** Selects one server: graphile-migrate does not support connection strings with several hosts. */
function onOneServer(url: string, rootUrl: string): Pick<RunnerJob, "url" | "rootUrl"> {
  const latest = findServer(url).latest?.name;
  const pin = (each: string) => {
    const { servers } = parseServers(each);
    return (servers.find(({ name }) => name === latest) ?? servers[0]!).url;
  };
  return { url: pin(url), rootUrl: pin(rootUrl) };
}

/**
 * Runs in a child process, because graphile-migrate exits the process when it loses an idle connection.
 * Connection strings are sent by a message, so that process lists do not show them.
 */
async function runInChildProcess(job: RunnerJob): Promise<RunnerError | null> {
  const child = fork(RUNNER, { execArgv: ["--disable-sigusr1"], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let fault: RunnerError | null = null;
  let output = "";
  child.on("message", (message) => (fault = message as RunnerError));
  child.stderr!.on("data", (chunk) => (output += chunk));
  child.send(job);
  const [code] = await once(child, "close");
  if (code !== 0 && !fault) throw new Error(`The migrations could not be applied:\n${output.trim()}`);
  return fault;
}

const ALLOW_CHANGE = "add the line --! AllowInvalidHash to the head of the file";
const MISSING_CONSTRAINT = /^constraint "(\w+)" (?:of relation|for table) "\w+" does not exist$/;

/** Before the first release, the service's schema was called `private`, and its constraints had names that projects choose too. */
function formerNameHint({ message, ...fields }: RunnerError["error"]): { readonly hint?: string } {
  const { code } = fields as Partial<pg.DatabaseError>;
  if (code === "3F000" && message.includes('"private"')) {
    const hint =
      `The schema of the service is called content_service. If you mean that one, write its name, and ${ALLOW_CHANGE}; ` +
      "a schema of your own has to be created.";
    return { hint };
  }
  const constraint = code === "42704" ? MISSING_CONSTRAINT.exec(message)?.[1] : undefined;
  if (constraint === undefined) return {};
  return {
    hint: `The constraint of a table of the service is called content_service_${constraint}. If you mean that constraint, write its name, and ${ALLOW_CHANGE}.`,
  };
}

type FailedRun = { readonly fault: RunnerError; readonly seen: SeenLocks; readonly limits: LockLimits };

/** The failed migration is the first of its history that is not recorded as applied. */
async function toMigrationError(
  url: string,
  histories: readonly MigrationHistory[],
  { fault: { history, error }, seen, limits }: FailedRun,
): Promise<Error> {
  const failed: Error & { code?: unknown } = Object.assign(
    new Error(error.message),
    error,
    history === "project" ? formerNameHint(error) : {},
  );
  return withClient(url, async (client) => {
    const committed = await committedMigrations(histories.find(({ name }) => name === history)!);
    const migration = committed[(await countApplied(client)).get(history) ?? 0];
    if (!migration) return failed;
    if (seen.heldTable !== null)
      return new Error(`${displayPath(migration.file)}: ${explainHeldReads(seen.heldTable, limits)}`);
    const source = await readSource(migration);
    const sql = await fillPlaceholders(client, source.sql);
    if (!isLockTimeout(failed) || limits.lockTimeoutMs === 0) {
      const place = await onPathOf({ name: history }, client, () => findErrorOffset(client, sql, failed));
      return new MigrationError(failed, { ...source, sql }, place);
    }
    failed.message = explainTimeout(seen.wait, limits, formOf(migration) === "none" ? "unknown" : "nothing");
    return new MigrationError(failed, { ...source, sql }, findWaiting(sql, seen.wait));
  });
}

type SteppedFolder = Pick<RunnerHistory, "lockTimeoutMs"> & { readonly migration: CommittedMigration };

/** Applies a migration of several transactions, from the first that is not committed. */
async function applyTransactions(
  url: string,
  { migration, lockTimeoutMs }: SteppedFolder,
  { limits, report }: Required<{ [Key in keyof ApplyOptions]: NonNullable<ApplyOptions[Key]> }>,
): Promise<void> {
  const { history } = migration;
  const source = await readSource(migration);
  const attempt = ({ applicationName }: MigrationSession) =>
    withClient(url, (client) =>
      onPathOf({ name: history }, client, async () => {
        const stepped = { migration, sql: source.sql, transactions: splitTransactions(source.sql) };
        const sql = await fillPlaceholders(client, source.sql);
        const transactions = splitTransactions(sql);
        const committed = await readProgress(client, stepped);
        await client.query(
          "select pg_catalog.set_config('application_name', $1, false), pg_catalog.set_config('lock_timeout', $2, false)",
          [applicationName, String(lockTimeoutMs)],
        );
        const finish = (index: number) => recordProgress(client, stepped, index + 1);
        try {
          await runTransactions(client, transactions, { committed, finish });
          return null;
        } catch (error) {
          if (!(error instanceof TransactionError)) throw error;
          const remark = describeCommitted({ ...source, sql }, transactions, error.committed);
          return { error: error.cause, sql, offset: error.offset, remark };
        }
      }),
    );
  await withClient(url, (client) => setDefaultPrivileges(client, history));
  const failed = await retryForLocks(url, limits, report, attempt);
  if (!failed) return;
  const { fault, seen } = failed;
  const { error, sql, offset } = fault;
  const remark = fault.remark && `${fault.remark} The next run continues after it.`;
  if (seen.heldTable !== null) {
    const held = explainHeldReads(seen.heldTable, limits, remark ?? undefined);
    throw new Error(`${displayPath(migration.file)}: ${held}`);
  }
  if (isLockTimeout(error) && lockTimeoutMs > 0)
    error.message = explainTimeout(seen.wait, limits, remark ? "transactions" : "nothing");
  throw new MigrationError(error, { ...source, sql }, offset, remark);
}

/** The body, with the line numbers in the file. */
export async function readSource({ file, body }: CommittedMigration): Promise<MigrationSource> {
  const text = await readFile(file, "utf8");
  const sql = body.trim();
  const first = text.slice(0, text.indexOf(sql)).split("\n").length;
  const origins = sql.split("\n").map((_, index) => ({ file: displayPath(file), line: first + index }));
  return { sql, origins };
}

/** Replaces the placeholders that graphile-migrate replaces in committed migrations. */
export async function fillPlaceholders(client: pg.ClientBase, sql: string): Promise<string> {
  const { rows } = await client.query<{ database: string; owner: string }>(
    "select pg_catalog.current_database() as database, session_user as owner",
  );
  const { database, owner } = rows[0]!;
  return sql.replace(/:DATABASE_NAME\b/g, () => database).replace(/:DATABASE_OWNER\b/g, () => owner);
}

/**
 * Applies the files in `current/` that have changed since they were last applied to this database, and all later files, each in
 * its own transaction.
 */
export async function applyCurrent(
  { url, histories }: MigrateSettings,
  report: ReportLine,
  files?: readonly CurrentFile[],
): Promise<void> {
  const current = files ?? (await readCurrentFiles(histories));
  await withClient(url, async (client) => {
    const applied = await appliedContents(client);
    const first = current.findIndex(
      (file) => statementsKey(applied.get(recordKeyOf(file))) !== statementsKey(file.sql),
    );
    const changed = first < 0 ? [] : current.slice(first);
    const removed = [...applied.keys()].filter((key) => !current.some((file) => recordKeyOf(file) === key));
    await client.query("delete from graphile_migrate.current where filename = any($1)", [
      [...removed, ...changed.map(recordKeyOf)],
    ]);
    for (const file of changed) {
      const begun = performance.now();
      await onPathOf({ name: file.history }, client, () => applyFile(client, file, report));
      report(`${displayPath(file.file)}: applied in ${Math.round(performance.now() - begun)} ms`);
    }
    if (changed.length > 0) report(`  When it is right: ${commandLine("migrate", 'commit "what it does"')}`);
    else if (current.length > 0) report("The migration in current/ is applied; nothing has changed.");
  });
}

/** A file may have become another role, which can neither record the file nor run the next one. */
const RESET_ROLE = "reset session authorization; reset role";

async function applyFile(client: pg.ClientBase, file: CurrentFile, report: ReportLine): Promise<void> {
  const sql = await fillPlaceholders(client, file.sql);
  await makeRoomForApiSchema(client, sql);
  if (file.transaction && endsTransactions(sql)) return applyFileInTransactions(client, { file, sql, report });
  try {
    if (file.transaction) await client.query("begin");
    const kept = file.transaction ? await keepRows(client, file) : [];
    await client.query(sql);
    await client.query(RESET_ROLE);
    await restoreKeptRows(client, kept, report);
    await recordCurrent(client, file);
    if (file.transaction) await client.query("commit");
  } catch (error) {
    if (file.transaction) await client.query("rollback");
    const offset = await findErrorOffset(client, sql, error as Error);
    throw new MigrationError(error as Error, { ...file, sql }, offset, repeatableHintOf(error));
  }
}

/** Starts at the first transaction even if some are committed: files of `current/` can be repeated. */
async function applyFileInTransactions(
  client: pg.ClientBase,
  { file, sql, report }: { readonly file: CurrentFile; readonly sql: string; readonly report: ReportLine },
): Promise<void> {
  const transactions = splitTransactions(sql);
  const keeping = transactions.findIndex(({ end }) => end === "commit");
  let kept: KeptTable[] = [];
  try {
    await runTransactions(client, transactions, {
      async begin(index) {
        if (index === keeping) kept = await keepRows(client, file);
      },
      async finish(index) {
        if (index < transactions.length - 1) return;
        await client.query(RESET_ROLE);
        await restoreKeptRows(client, kept, report);
        await recordCurrent(client, file);
      },
    });
  } catch (error) {
    throw explainTransactionError(error, { ...file, sql }, transactions);
  }
}

async function recordCurrent(client: pg.ClientBase, file: CurrentFile): Promise<void> {
  await client.query("insert into graphile_migrate.current (filename, content) values ($1, $2)", [
    recordKeyOf(file),
    file.sql,
  ]);
}

export type CurrentState = {
  /** The files as the database has applied them. */
  readonly applied: readonly CurrentFile[];
  /** Paths of the files that the database has not applied, or not as they are. */
  readonly pending: readonly string[];
};

/** Compares the files of `current/` with those that the database has applied. */
export async function readCurrentState({ url, histories }: MigrateSettings): Promise<CurrentState> {
  const files = await readCurrentFiles(histories);
  const contents = await withClient(url, appliedContents);
  const appliedSql = (file: CurrentFile) => contents.get(recordKeyOf(file));
  return {
    applied: files.flatMap((file) => {
      const sql = appliedSql(file);
      return sql === undefined ? [] : [{ ...file, sql }];
    }),
    pending: files
      .filter((file) => statementsKey(appliedSql(file)) !== statementsKey(file.sql))
      .map(({ file }) => displayPath(file)),
  };
}

/** Empty in a database without a record of migrations. */
async function appliedContents(client: pg.ClientBase): Promise<Map<string, string>> {
  const { rows: found } = await client.query(
    "select where pg_catalog.to_regclass('graphile_migrate.current') is not null",
  );
  if (found.length === 0) return new Map();
  const { rows } = await client.query<{ filename: string; content: string }>(
    "select filename, content from graphile_migrate.current",
  );
  return new Map(rows.map(({ filename, content }) => [filename, content]));
}

/** Ignores comments between statements, so that changing one does not apply the file again. */
function statementsKey(sql: string | undefined): string | null {
  return sql === undefined ? null : JSON.stringify(splitStatements(sql).map((statement) => statement.sql));
}

function recordKeyOf({ history, name }: CurrentFile): string {
  return `${history}/${name}`;
}
