import { extname } from "node:path";
import type pg from "pg";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import type { MigrationHistory } from "../engine/migrate/committed-migrations.ts";
import { runMigrations } from "../engine/migrate/migrate.ts";
import { explainDivergence, readMigrationState, SINGLE_HISTORY_ADVICE } from "../engine/migrate/migration-state.ts";
import { hasSchemaChangeTrigger, schemaChangeTriggerSql } from "../engine/migrate/schema-change-trigger.ts";
import { withClient } from "../engine/pg-client/with-client.ts";
import { joinPostgres, type PostgresUrls, reachPostgres } from "../engine/postgres/served-postgres.ts";
import { commandLine, findAction, runCommand, UsageError } from "./command.ts";
import { driftFindings, readDrift } from "./drift-findings.ts";

/** A package has what was built of the sources, and migrations that the next release replaces. */
const isClone = extname(import.meta.filename) === ".ts";

type MigrateOptions = { readonly message: string; readonly history: MigrationHistory["name"] };
type MigrateAction = (postgres: PostgresUrls, options: MigrateOptions) => Promise<void>;

/** Insufficient privilege. */
const INSUFFICIENT_PRIVILEGE = "42501";
const HISTORIES: readonly string[] = ["project", "content", "platform"] satisfies MigrationHistory["name"][];

const ACTIONS: Readonly<Record<string, MigrateAction>> = {
  async migrate(postgres) {
    // A login that may not see what is applied is refused with the setting that is missing.
    await withClient(postgres.ownerUrl, (client) => readMigrationState(client, postgres.migrate.histories));
    await runMigrations({ name: "migrate" }, postgres.migrate);
    await printStatus(postgres);
  },
  async status(postgres) {
    await printStatus(postgres);
    for (const { problem: what, fix } of driftFindings(await readDrift(postgres)))
      console.log(`\n${what}\n        ${fix}`);
  },
  async commit({ migrate }, { message, history }) {
    if (!message) {
      throw new UsageError(`A commit needs a message of a few words: ${commandLine("migrate", 'commit "add tags"')}`);
    }
    printFiles(await runMigrations({ name: "commit", message, history }, migrate));
  },
  async uncommit({ migrate }, { history }) {
    printFiles(await runMigrations({ name: "uncommit", history }, migrate));
  },
  async reset(postgres) {
    await runMigrations({ name: "reset" }, postgres.migrate);
    await printStatus(postgres);
  },
  async dump({ migrate }) {
    const files = await runMigrations({ name: "dump" }, migrate);
    if (files.length === 0) console.log("schema.sql is up to date.");
    printFiles(files);
  },
};

/** For a database that is served as it is: creates the event trigger, and nothing else. */
async function createTrigger({ ownerUrl }: PostgresUrls, { channel }: Config): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    if (await hasSchemaChangeTrigger(client, channel)) {
      console.log("An event trigger tells of changes of the schema already; nothing was changed.");
      return;
    }
    const sql = await schemaChangeTriggerSql(channel);
    await client.query(sql).catch((error: pg.DatabaseError) => {
      if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new Error(`${error.message}. Have a superuser run this, or set OWNER_DATABASE_URL to one:\n\n${sql}`);
    });
    console.log("Changes of the schema are seen at once, by an event trigger in schema content_service.");
  });
}

function printFiles(files: readonly string[]): void {
  for (const file of files) console.log(`wrote ${file}`);
}

async function printStatus({ ownerUrl, migrate }: PostgresUrls): Promise<void> {
  const state = await withClient(ownerUrl, (client) => readMigrationState(client, migrate.histories));
  switch (state.kind) {
    case "foreign":
      console.log("None of our migrations is applied to this database.");
      break;
    case "single history":
      throw new Error(SINGLE_HISTORY_ADVICE);
    case "diverged":
      throw new Error(explainDivergence(state));
    case "current":
      console.log(`All ${state.applied} migrations are applied.`);
      for (const advice of await withClient(ownerUrl, findMissingPrivileges)) console.log(advice);
      break;
    case "behind":
      console.log(`${state.missing.length} migrations are missing:\n  ${state.missing.join("\n  ")}`);
      break;
    case "ahead":
      console.log(`The database has migrations that this release does not know:\n  ${state.unknown.join("\n  ")}`);
      break;
  }
}

/** What the owner was not allowed to set up; the migrations go on without it. */
async function findMissingPrivileges(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ bypasses: boolean; told: boolean }>(
    `select (select rolbypassrls from pg_roles where rolname = 'service_role') as bypasses,
      exists (select from pg_event_trigger where evtname = 'schema_changed') as told`,
  );
  const { bypasses, told } = rows[0]!;
  return [
    ...(bypasses ? [] : ["service_role is bound by policies. As a superuser, run: alter role service_role bypassrls"]),
    ...(told
      ? []
      : [
          "Changes of the schema are found by looking every few seconds. As a superuser, run: " +
            commandLine("migrate", "--watch-only"),
        ]),
  ];
}

function parseHistory(historyOption: unknown): MigrationHistory["name"] {
  if (historyOption === undefined) return "project";
  if (!HISTORIES.includes(String(historyOption))) throw new UsageError(`--history is one of ${HISTORIES.join(", ")}.`);
  const refusal = historyOption === "project" ? null : refuseOutsideClone(`--history ${historyOption}`);
  if (refusal !== null) throw new Error(refusal);
  return historyOption as MigrationHistory["name"];
}

await runCommand({
  usage: `${commandLine("migrate")}
  applies the committed migrations: those of the release, then the project's
${commandLine("migrate", "status")}
  prints which are applied and which are missing, and how the schema differs from what they make
${commandLine("migrate", "commit MESSAGE [--history NAME]")}
  turns the files of current/ into a committed migration, and renews schema.sql
${commandLine("migrate", "uncommit [--history NAME]")}
  turns the last committed migration into files of current/ again
${commandLine("migrate", "reset --erase")}
  drops the database with ALL ITS DATA and creates it again
${commandLine("migrate", "dump")}
  renews schema.sql
${commandLine("migrate", "--watch-only")}
  applies no migration: has a database that is served as it is tell of changes of its schema, by an event trigger
  --history   project (default: the folder of MIGRATIONS_DIR), or content or platform, which belong to the release

Example:
  ${commandLine("migrate", 'commit "add tags"')}`,
  options: { erase: { type: "boolean" }, history: { type: "string" }, "watch-only": { type: "boolean" } },
  async run(config, positionals, { erase, history: historyOption, "watch-only": isWatchOnly }) {
    const [action = "migrate", ...args] = positionals;
    if (isWatchOnly && positionals.length > 0) throw new UsageError(`--watch-only stands alone, without "${action}".`);
    const act = findAction(ACTIONS, "migrate", action);
    if (args.length > 0 && action !== "commit") throw new UsageError(`"${args[0]}" is one word too many.`);
    const history = parseHistory(historyOption);
    if (historyOption !== undefined && action !== "commit" && action !== "uncommit") {
      throw new UsageError("--history is for commit and uncommit.");
    }
    if (action === "reset") {
      if (!erase) throw new UsageError("reset drops the database with all its data; say so with --erase.");
      if (isEmbedded(config) && (await joinPostgres(config))) {
        throw new Error("The service is running on this database: stop it before resetting it.");
      }
    }
    const mayCreate = action === "migrate" && !isWatchOnly;
    const postgres = await reachPostgres(config, (step) => console.error(step), { mayCreate });
    try {
      if (isWatchOnly) await createTrigger(postgres, config);
      else await act(postgres, { message: args.join(" "), history });
    } finally {
      await postgres.close();
    }
  },
});

/** Why a release's own migrations cannot be written here; null in a clone, where they are kept. */
export function refuseOutsideClone(option: string): string | null {
  if (isClone) return null;
  return `${option} is for a clone of the repository. Here, write migrations of your project: leave out --history.`;
}
