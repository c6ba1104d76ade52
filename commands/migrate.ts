import type pg from "pg";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import type { History } from "../engine/migrate/histories.ts";
import { runMigrations } from "../engine/migrate/migrate.ts";
import { SINGLE_HISTORY_ADVICE } from "../engine/migrate/record.ts";
import { divergedAdvice, migrationState } from "../engine/migrate/state.ts";
import { isToldOfDdl, watchTriggerSql } from "../engine/migrate/watch-trigger.ts";
import { joinPostgres, type Postgres, reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { outsideClone } from "./clone.ts";
import { actionOf, runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { driftFindings, readDrift } from "./drift-findings.ts";

type Options = { readonly message: string; readonly history: History["name"] };
type Action = (postgres: Postgres, options: Options) => Promise<void>;

/** Insufficient privilege. */
const NOT_PERMITTED = "42501";
const HISTORIES: readonly string[] = ["project", "content", "platform"] satisfies History["name"][];

const ACTIONS: Readonly<Record<string, Action>> = {
  async migrate(postgres) {
    // A login that may not see what is applied is refused with the setting that is missing.
    await withClient(postgres.ownerUrl, (client) => migrationState(client, postgres.migrate.histories));
    await runMigrations({ name: "migrate" }, postgres.migrate);
    await printStatus(postgres);
  },
  async status(postgres) {
    await printStatus(postgres);
    for (const { what, fix } of driftFindings(await readDrift(postgres))) console.log(`\n${what}\n        ${fix}`);
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
async function watchOnly({ ownerUrl }: Postgres, { channel }: Config): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    if (await isToldOfDdl(client, channel)) {
      console.log("An event trigger tells of changes of the schema already; nothing was changed.");
      return;
    }
    const sql = await watchTriggerSql(channel);
    await client.query(sql).catch((error: pg.DatabaseError) => {
      if (error.code !== NOT_PERMITTED) throw error;
      throw new Error(`${error.message}. Have a superuser run this, or set OWNER_DATABASE_URL to one:\n\n${sql}`);
    });
    console.log("Changes of the schema are seen at once, by an event trigger in schema content_service.");
  });
}

function printFiles(files: readonly string[]): void {
  for (const file of files) console.log(`wrote ${file}`);
}

async function printStatus({ ownerUrl, migrate }: Postgres): Promise<void> {
  const state = await withClient(ownerUrl, (client) => migrationState(client, migrate.histories));
  switch (state.kind) {
    case "foreign":
      console.log("None of our migrations is applied to this database.");
      break;
    case "single history":
      throw new Error(SINGLE_HISTORY_ADVICE);
    case "diverged":
      throw new Error(divergedAdvice(state));
    case "current":
      console.log(`All ${state.applied} migrations are applied.`);
      for (const advice of await withClient(ownerUrl, shortcomings)) console.log(advice);
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
async function shortcomings(client: pg.Client): Promise<string[]> {
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

function historyOf(given: unknown): History["name"] {
  if (given === undefined) return "project";
  if (!HISTORIES.includes(String(given))) throw new UsageError(`--history is one of ${HISTORIES.join(", ")}.`);
  const refusal = given === "project" ? null : outsideClone(`--history ${given}`);
  if (refusal !== null) throw new Error(refusal);
  return given as History["name"];
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
  async run(config, line, { erase, history: given, "watch-only": isWatchOnly }) {
    const [action = "migrate", ...words] = line;
    if (isWatchOnly && line.length > 0) throw new UsageError(`--watch-only stands alone, without "${action}".`);
    const act = actionOf(ACTIONS, "migrate", action);
    if (words.length > 0 && action !== "commit") throw new UsageError(`"${words[0]}" is one word too many.`);
    const history = historyOf(given);
    if (given !== undefined && action !== "commit" && action !== "uncommit") {
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
      if (isWatchOnly) await watchOnly(postgres, config);
      else await act(postgres, { message: words.join(" "), history });
    } finally {
      await postgres.close();
    }
  },
});
