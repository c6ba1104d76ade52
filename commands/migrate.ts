import { writeFile } from "node:fs/promises";
import type pg from "pg";
import { type Config, isEmbedded } from "../engine/config/config.ts";
import { migrationState, SCHEMA_FILE } from "../engine/migrate/history.ts";
import { runMigrations } from "../engine/migrate/migrate.ts";
import { isToldOfDdl, watchTriggerSql } from "../engine/migrate/watch-trigger.ts";
import { joinPostgres, type Postgres, reachPostgres } from "../engine/postgres.ts";
import { dumpSchema } from "../engine/schema-dump.ts";
import { withClient } from "../engine/with-client.ts";
import { withoutBook } from "./clone.ts";
import { actionOf, runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";

type Action = (postgres: Postgres, message: string) => Promise<void>;

const ACTIONS: Readonly<Record<string, Action>> = {
  async migrate(postgres) {
    // Who may not see what is applied is told which setting is missing.
    await withClient(postgres.ownerUrl, (client) => migrationState(client));
    await runMigrations({ name: "migrate" }, postgres.migrate);
    await tellStatus(postgres);
  },
  status: tellStatus,
  async commit(postgres, message) {
    if (!message)
      throw new UsageError(`A commit wants a message of a few words: ${commandLine("migrate", 'commit "add tags"')}`);
    console.log(await runMigrations({ name: "commit", message }, postgres.migrate));
    await dumpCommitted(postgres);
  },
  async uncommit(postgres) {
    console.log(await runMigrations({ name: "uncommit" }, postgres.migrate));
    await dumpCommitted(postgres);
  },
  async reset(postgres) {
    await runMigrations({ name: "reset" }, postgres.migrate);
    await tellStatus(postgres);
  },
  dump,
};

/** For a database that is served as it is: makes the event trigger, and nothing else. */
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

/** Insufficient privilege. */
const NOT_PERMITTED = "42501";
/** They write files of the book. */
const OF_THE_BOOK = ["commit", "uncommit", "dump"];

async function tellStatus(postgres: Postgres): Promise<void> {
  const state = await withClient(postgres.ownerUrl, (client) => migrationState(client));
  switch (state.kind) {
    case "foreign":
      console.log("None of our migrations is applied to this database.");
      break;
    case "current":
      console.log(`All ${state.applied} migrations are applied.`);
      for (const advice of await withClient(postgres.ownerUrl, shortcomings)) console.log(advice);
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

/** Both commands leave what is committed, and nothing else, in the shadow database. */
async function dumpCommitted({ migrate }: Postgres): Promise<void> {
  await dump({ ownerUrl: migrate.shadowUrl });
}

async function dump(postgres: Pick<Postgres, "ownerUrl">): Promise<void> {
  await writeFile(SCHEMA_FILE, await withClient(postgres.ownerUrl, dumpSchema));
  console.log("db/schema.sql shows the schema as it is now.");
}

await runCommand({
  usage: `${commandLine("migrate")}
  applies the committed migrations
${commandLine("migrate", "status")}
  says which are applied and which are not
${commandLine("migrate", "commit MESSAGE")}
  turns db/migrations/current into a committed migration, and renews db/schema.sql
${commandLine("migrate", "uncommit")}
  takes the last commit back into db/migrations/current
${commandLine("migrate", "reset --erase")}
  drops the database with ALL ITS DATA and makes it anew
${commandLine("migrate", "dump")}
  renews db/schema.sql
${commandLine("migrate", "--watch-only")}
  applies no migration: has a database that is served as it is tell of changes of its schema, by an event trigger

Example:
  ${commandLine("migrate", 'commit "add tags"')}`,
  options: { erase: { type: "boolean" }, "watch-only": { type: "boolean" } },
  async run(config, given, { erase, "watch-only": isWatchOnly }) {
    const [action = "migrate", ...words] = given;
    if (isWatchOnly && given.length > 0) throw new UsageError(`--watch-only stands alone, without "${action}".`);
    const act = actionOf(ACTIONS, "migrate", action);
    if (words.length > 0 && action !== "commit") throw new UsageError(`"${words[0]}" is one word too many.`);
    const refusal = OF_THE_BOOK.includes(action) ? withoutBook(commandLine("migrate", action)) : null;
    if (refusal !== null) throw new Error(refusal);
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
      else await act(postgres, words.join(" "));
    } finally {
      await postgres.close();
    }
  },
});
