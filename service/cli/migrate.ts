import { extname } from "node:path";
import type pg from "pg";
import { missingTriggerSql } from "#catalog/loading";
import { joinPostgres, type PostgresUrls, reachPostgres } from "#cluster";
import { type Config, isEmbedded } from "#config";
import {
  explainDivergence,
  holdsOthers,
  isAnyPending,
  type MigrationHistory,
  type RehearsedStatement,
  readMigrationState,
  refuseRehearsalOnCitus,
  rehearseMigrations,
  runMigrations,
  undoMigration,
} from "#migrate";
import { withClient, withServiceClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { findAction, runCommand, UsageError } from "./command/command.ts";
import { confirmAtTerminal } from "./command/confirm.ts";
import { withProgress } from "./command/progress.ts";
import { DIFF_OPTIONS, type DiffOptions, EXIT_CHANGED, parseDiffOptions } from "./diff-options.ts";
import {
  BACKFILL_OPTIONS,
  type BackfillCommand,
  backfill,
  EXIT_INCOMPLETE,
  PLAN_USAGE,
  parseBackfillOptions,
  writePlan,
} from "./expand-contract.ts";
import { printMigrationUndo, printRehearsal, printWarnings } from "./print-rehearsal.ts";
import { EXIT_HOLDS, parseRehearseOptions, REHEARSE_OPTIONS, type RehearseOptions } from "./rehearse-options.ts";

/** The package contains built files, and migrations that the next release replaces. */
const isClone = extname(import.meta.filename) === ".ts";

type MigrateOptions = {
  readonly config: Config;
  readonly message: string;
  /** The words after the action. */
  readonly words: readonly string[];
  readonly history: MigrationHistory["name"];
  readonly diff: DiffOptions;
  readonly rehearsal: RehearseOptions;
  /** True if commit may drop rows that cannot come back. */
  readonly dropsRows: boolean;
  readonly isConfirmed: boolean;
  readonly isForced: boolean;
  readonly backfill: BackfillCommand;
};
type MigrateAction = (postgres: PostgresUrls, options: MigrateOptions) => Promise<void>;

const INSUFFICIENT_PRIVILEGE = "42501";
const HISTORIES: readonly string[] = ["project", "content", "platform"] satisfies MigrationHistory["name"][];

const ACTIONS: Readonly<Record<string, MigrateAction>> = {
  async migrate(postgres, { config }) {
    // Fails with advice if the login role may not read the record of migrations.
    await withClient(postgres.directUrl, (client) => readMigrationState(client, postgres.migrate.histories));
    await runMigrations({ name: "migrate", report: console.error }, postgres.migrate);
    await printStatus(postgres, config);
  },
  async status(postgres, { config }) {
    await printStatus(postgres, config);
    const { driftFindings, readDrift } = await import("#operations/doctor");
    for (const { problem, fix } of driftFindings(await readDrift(postgres)))
      console.log(`\n${problem}\n        ${fix}`);
  },
  async commit({ migrate }, { message, history, dropsRows }) {
    if (!message) {
      throw new UsageError(`commit requires a message: ${commandLine("migrate", 'commit "add tags"')}`);
    }
    const reportStatements = (statements: readonly RehearsedStatement[] | null) => {
      const warnings = printWarnings(statements);
      if (warnings !== null) console.log(`${warnings}\n`);
    };
    const confirmLoss = async (tables: readonly string[]) =>
      dropsRows || confirmAtTerminal(`The migration drops for good:\n  ${tables.join("\n  ")}\nDrop the rows?`);
    const reports = { report: console.log, reportStatements, confirmLoss };
    printFiles(await runMigrations({ name: "commit", message, history, ...reports }, migrate));
  },
  async uncommit({ migrate }, { history }) {
    printFiles(await runMigrations({ name: "uncommit", history }, migrate));
  },
  async undo({ migrate }, { isConfirmed, isForced }) {
    const undone = await undoMigration(migrate, { isConfirmed, isForced, report: console.error });
    const printed = printMigrationUndo(undone);
    if (undone.undo.verdict === "cannot be undone")
      throw new Error(`${printed}\nWrite a new migration that takes back what it has done, or restore a backup.`);
    const needsForce = undone.changedSince.length > 0;
    const unchanged = `Nothing was changed. With --yes${needsForce ? " --force" : ""} it is undone.`;
    if (isConfirmed && needsForce && !isForced) throw new Error(`${printed}\n${unchanged}`);
    console.log(printed);
    console.log(
      isConfirmed
        ? `It is undone. Its file stays, so the next start or ${commandLine("migrate")} applies it again. To change or delete it, first stop the service, which applies each file of current/, then turn it back into files there: ${commandLine("migrate", "uncommit")}`
        : unchanged,
    );
  },
  async seed({ migrate }) {
    await runMigrations({ name: "seed" }, migrate);
    console.log("The rows of seed.sql are inserted.");
  },
  async reset(postgres, { config }) {
    await runMigrations({ name: "reset" }, postgres.migrate);
    await printStatus(postgres, config);
  },
  async dump({ migrate }) {
    const files = await runMigrations({ name: "dump" }, migrate);
    if (files.length === 0) console.log("schema.sql is up to date.");
    printFiles(files);
  },
  async diff(postgres, { config, diff }) {
    // Imported here, because it loads all interfaces.
    const { diffInterfaces } = await import("./migrate-diff.ts");
    process.exitCode = await diffInterfaces(postgres, config, diff);
  },
  async rehearse(postgres, { rehearsal: { schemaOnly, format } }) {
    if (!(await isAnyPending(postgres.migrate))) {
      console.log(printRehearsal([], format));
      return;
    }
    const { withSchemaCopy } = await import("#cluster/archive");
    const withRows = !schemaOnly;
    const warn = (warning: string) => console.error(`warning: ${warning}`);
    const { readRequestRates } = await import("#operations/contract");
    const { directUrl: originalUrl } = postgres;
    // A copy of all rows would take long.
    await withServiceClient(originalUrl, refuseRehearsalOnCitus);
    const requestRates = await withServiceClient(originalUrl, readRequestRates);
    const title = withRows ? "rehearsing on a copy with all rows" : "rehearsing on a copy without rows";
    const statements = await withProgress(title, () =>
      withSchemaCopy(postgres, { withRows, warn }, (settings) =>
        rehearseMigrations(settings, { originalUrl, withRows, requestRates }),
      ),
    );
    console.log(printRehearsal(statements, format));
    if (statements.some(holdsOthers)) process.exitCode = EXIT_HOLDS;
  },
  plan: (postgres, { words }) => writePlan(postgres, words),
  async backfill(postgres, options) {
    process.exitCode = await backfill(postgres, options.backfill);
  },
};

/** Creates only the event trigger, for a database that is served as it is. */
async function createTrigger({ directUrl }: PostgresUrls, { channel }: Config): Promise<void> {
  await withClient(directUrl, async (client) => {
    const sql = await missingTriggerSql(client, channel);
    if (sql === null) {
      console.log("The event triggers exist already. Nothing was changed.");
      return;
    }
    await client.query(sql).catch((error: pg.DatabaseError) => {
      if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new Error(`${error.message}. Run this as a superuser, or set OWNER_DATABASE_URL to one:\n\n${sql}`);
    });
    console.log("Created event triggers: schema changes are detected at once.");
  });
}

function printFiles(files: readonly string[]): void {
  for (const file of files) console.log(`wrote ${file}`);
}

async function printStatus({ directUrl, migrate }: PostgresUrls, config: Config): Promise<void> {
  const state = await withClient(directUrl, (client) => readMigrationState(client, migrate.histories));
  switch (state.kind) {
    case "foreign":
      console.log("None of the service's migrations is applied to this database.");
      break;
    case "diverged":
      throw new Error(explainDivergence(state));
    case "current":
      console.log(`All ${state.applied} migrations are applied.`);
      for (const advice of await withClient(directUrl, (client) => findMissingPrivileges(client, config)))
        console.log(advice);
      break;
    case "behind":
      console.log(`${pendingCount(state.missing.length)}:\n  ${state.missing.join("\n  ")}`);
      break;
    case "ahead":
      console.log(`The database has migrations that are not in this release:\n  ${state.unknown.join("\n  ")}`);
      break;
  }
}

function pendingCount(count: number): string {
  return count === 1 ? "1 migration is pending" : `${count} migrations are pending`;
}

/** Advice about what migrations left out because the owner lacked privileges. */
async function findMissingPrivileges(client: pg.Client, { channel }: Config): Promise<string[]> {
  const { rows } = await client.query<{ bypasses: boolean }>(
    "select rolbypassrls as bypasses from pg_catalog.pg_roles where rolname operator(pg_catalog.=) 'service_role'",
  );
  const hasTriggers = (await missingTriggerSql(client, channel)) === null;
  return [
    ...(rows[0]?.bypasses
      ? []
      : ["service_role does not bypass row-level security. As a superuser, run: alter role service_role bypassrls"]),
    ...(hasTriggers
      ? []
      : [
          "Schema changes are detected by polling every few seconds, and new tables have no live changes. As a superuser, run: " +
            commandLine("migrate", "--watch-only"),
        ]),
  ];
}

function parseHistory(historyOption: unknown): MigrationHistory["name"] {
  if (historyOption === undefined) return "project";
  if (!HISTORIES.includes(String(historyOption)))
    throw new UsageError(`--history must be one of ${HISTORIES.join(", ")}.`);
  const refusal = historyOption === "project" ? null : refuseOutsideClone(`--history ${historyOption}`);
  if (refusal !== null) throw new Error(refusal);
  return historyOption as MigrationHistory["name"];
}

/** The options that only these actions have. */
const ACTION_OPTIONS: Readonly<Record<string, object>> = {
  diff: DIFF_OPTIONS,
  rehearse: REHEARSE_OPTIONS,
  backfill: BACKFILL_OPTIONS,
};

function refuseOptions(action: string, options: Readonly<Record<string, unknown>>): void {
  const allowed = ACTION_OPTIONS[action] ?? {};
  const refused = Object.keys({ ...DIFF_OPTIONS, ...REHEARSE_OPTIONS, ...BACKFILL_OPTIONS }).find(
    (option) => options[option] !== undefined && !(option in allowed),
  );
  if (refused !== undefined) throw new UsageError(`--${refused} cannot be combined with "${action}".`);
}

await runCommand({
  usage: `${commandLine("migrate")}
  Applies the committed migrations: those of the release, then the project's.
${commandLine("migrate", "status")}
  Prints applied and pending migrations, and how the schema differs from them.
${commandLine("migrate", "commit MESSAGE [--history NAME] [--drop-rows]")}
  Turns the files in current/ into a committed migration and updates schema.sql. Says which statements hold up others where tables
  are large, and their safe forms. Rows of a table that the files drop are kept if it comes back with the same columns.
  --drop-rows   drop the rows of the other tables without asking
${commandLine("migrate", "uncommit [--history NAME]")}
  Turns the last committed migration back into files in current/.
${commandLine("migrate", "undo [--yes [--force]]")}
  Prints the SQL that undoes the project's last migration, and what is lost with it; with --yes runs it, and records the migration as
  not applied. Refuses if that does not restore what was there before the migration.
  --force     also takes back changes that were made by hand after the migration
${commandLine("migrate", "seed")}
  Runs db/seed.sql, beside the folder of the project's migrations.
${commandLine("migrate", "reset --erase")}
  Drops the database with ALL ITS DATA and creates it again.
${commandLine("migrate", "dump")}
  Updates schema.sql.
${commandLine("migrate", "diff [--fail-on LEVEL] [--against FILE] [--json]")}
  Compares all interfaces with those after the pending migrations, which are applied to a copy of the schema without rows.
  --fail-on   breaking, dangerous, or used (breaking for recorded requests): exit with ${EXIT_CHANGED} if there is such a change
  --against   compare with a snapshot in place of the database
  --json      print JSON in place of Markdown
${commandLine("migrate", "diff --save FILE")}
  Writes a snapshot of the interfaces of the database as it is.
${commandLine("migrate", "rehearse [--schema-only] [--json | --markdown]")}
  Applies the pending migrations to a copy of the database, and prints the locks of each statement, the rows that it reads and
  writes, whom it would hold up, and a safe form; of each migration whether it can be undone, and the SQL that does. Exits with
  ${EXIT_HOLDS} if a statement would hold up others for long.
  --schema-only   copy no rows: numbers of rows are estimates
${PLAN_USAGE}
  Writes the migrations that change a column in steps, while old and new clients write, into the folder plans/ beside current/.
  Expressions name columns of the table without it, and functions with their schema.
${commandLine("migrate", "backfill [--load PERCENT]")}
  Fills the rows that an applied plan left, in small batches. Ctrl-C stops it; run again, it continues.
  --load      how much of the time batches may run, in percent; default: 20
${commandLine("migrate", "backfill --status")}
  Prints how many rows are left. Exits with ${EXIT_INCOMPLETE} until a backfill has completed them.
${commandLine("migrate", "--watch-only")}
  Applies no migration: creates the event triggers that report schema changes and, in a migrated database, publish new tables and
  let service_role bypass policies. Requires a superuser.
  --history   project (default; the folder MIGRATIONS_DIR), content or platform (both part of the release)

Example:
  ${commandLine("migrate", 'commit "add tags"')}`,
  options: {
    "drop-rows": { type: "boolean" },
    erase: { type: "boolean" },
    force: { type: "boolean" },
    history: { type: "string" },
    "watch-only": { type: "boolean" },
    yes: { type: "boolean" },
    ...DIFF_OPTIONS,
    ...REHEARSE_OPTIONS,
    ...BACKFILL_OPTIONS,
  },
  async run(config, positionals, options) {
    const { erase, yes, force, history: historyOption, "watch-only": isWatchOnly, ...others } = options;
    const [action = "migrate", ...args] = positionals;
    if (isWatchOnly && positionals.length > 0)
      throw new UsageError(`--watch-only cannot be combined with "${action}".`);
    const act = findAction(ACTIONS, "migrate", action);
    if (args.length > 0 && action !== "commit" && action !== "plan")
      throw new UsageError(`Unexpected argument "${args[0]}".`);
    const history = parseHistory(historyOption);
    if (historyOption !== undefined && action !== "commit" && action !== "uncommit") {
      throw new UsageError("--history is only allowed with commit and uncommit.");
    }
    const dropsRows = options["drop-rows"] === true;
    if (dropsRows && action !== "commit") throw new UsageError("--drop-rows is only allowed with commit.");
    if (yes && action !== "undo") throw new UsageError(`--yes cannot be combined with "${action}".`);
    if (force && !yes) throw new UsageError("--force is only allowed with undo --yes.");
    refuseOptions(action, others);
    const diff = parseDiffOptions(action === "diff" ? others : {});
    const rehearsal = parseRehearseOptions(action === "rehearse" ? others : {});
    const backfillCommand = parseBackfillOptions(action === "backfill" ? others : {});
    if (action === "reset") {
      if (!erase) throw new UsageError("reset drops the database with all its data; confirm it with --erase.");
      if (isEmbedded(config) && (await joinPostgres(config))) {
        throw new Error("The service is running on this database. Stop it before you reset it.");
      }
    }
    const mayCreate = !isWatchOnly && ["migrate", "diff", "rehearse"].includes(action);
    const postgres = await reachPostgres(config, (step) => console.error(step), { mayCreate });
    try {
      if (isWatchOnly) await createTrigger(postgres, config);
      else {
        await act(postgres, {
          config,
          message: args.join(" "),
          words: args,
          history,
          diff,
          rehearsal,
          dropsRows,
          backfill: backfillCommand,
          isConfirmed: yes === true,
          isForced: force === true,
        });
      }
    } finally {
      await postgres.close();
    }
  },
});

/** Returns why the release's histories cannot be changed here; null in a clone. */
function refuseOutsideClone(option: string): string | null {
  if (isClone) return null;
  return `${option} works only in a clone of the repository. Omit --history to write migrations of your project.`;
}
