import { once } from "node:events";
import { withClient } from "../postgres/client/with-client.ts";
import { type TestDatabase, urlOf } from "./database.ts";
import { openWire } from "./postgres-wire.ts";
import { run } from "./program.ts";
import { SECRET } from "./secret.ts";
import { runCommand } from "./service/cli/run-command.ts";
import { until } from "./until.ts";

type KilledCommand = {
  readonly database: Pick<TestDatabase, "name">;
  /** The name of the command, such as `branch`. */
  readonly command: string;
  readonly words: readonly string[];
  readonly settings?: NodeJS.ProcessEnv;
  /** The statements that it is killed at. */
  readonly isStep: RegExp;
};

/** The step at which the process of the command is killed: the first that has one before it. */
const PROCESS_STEP = 1;

/**
 * Runs a command again and again, each time killed at a later statement: the statement reaches Postgres, which runs it to its end, and
 * nobody hears the result. Once this is a process that is ended by SIGKILL. Otherwise the command runs in this process, where it hears
 * nothing more of Postgres and reaches it no longer: to Postgres it is the same. Ends when a run has no step left, and returns the number
 * of steps.
 */
export async function killAtEachStep(
  { database, command, words, settings = {}, isStep }: KilledCommand,
  check: (statement: string) => Promise<void>,
): Promise<number> {
  for (let step = 0; ; step++) {
    let seen = 0;
    const killed = Promise.withResolvers<string>();
    let hasKilled = false;
    let kill = () => {};
    const listen = () => (said: Buffer) => {
      const statement = statementIn(said);
      if (!isStep.test(statement) || hasKilled || seen++ < step) return;
      hasKilled = true;
      kill();
      killed.resolve(statement);
    };
    const wire = await openWire(urlOf("postgres", database.name), { listen });
    const urlTo = (role: string, name: string) =>
      wire.url.replace("//postgres@", `//${role}@`).replace(/\/[^/]*$/, `/${name}`);
    const urls = { url: urlTo("authenticator", database.name), ownerUrl: urlTo("postgres", database.name) };
    const environment = {
      SHADOW_DATABASE_URL: urlTo("postgres", `${database.name}_shadow`),
      ROOT_DATABASE_URL: urlTo("postgres", "postgres"),
      ...settings,
    };
    let result: Promise<{ readonly code: number | null; readonly stderr: string }>;
    if (step === PROCESS_STEP) {
      const own = { DATABASE_URL: urls.url, OWNER_DATABASE_URL: urls.ownerUrl, JWT_SECRET: SECRET };
      const { child, streams } = run(`service/cli/${command}.ts`, { ...own, ...environment }, { args: words });
      kill = () => child.kill("SIGKILL");
      result = once(child, "close").then(([code]) => ({ code, stderr: streams.logged }));
    } else {
      // The statement is passed on first.
      kill = () => process.nextTick(wire.abandon);
      result = runCommand(command, words, urls, environment);
    }
    try {
      const ended = await Promise.race([killed.promise, result]);
      if (typeof ended !== "string") {
        if (ended.code !== 0) throw new Error(`It ended with ${ended.code}:\n${ended.stderr}`);
        return step;
      }
      if (step === PROCESS_STEP) await result;
      await until(async () => !(await hasSessions(database.name)));
      await check(ended);
    } finally {
      await wire.close();
      await result;
    }
  }
}

/** Returns the text of a simple query or a parsed one, which clients send first; empty for other messages. */
function statementIn(said: Buffer): string {
  return /^(?:Q[\s\S]{4}|P[\s\S]{4}\0)\s*([^\0]*)/.exec(said.toString("latin1"))?.[1] ?? "";
}

/** Postgres notices that a client has gone when it has run its statement. */
function hasSessions(name: string): Promise<boolean> {
  return withClient(urlOf("postgres", "postgres"), async (client) => {
    const { rowCount } = await client.query(
      `select from pg_stat_activity
       where starts_with(datname, $1) or application_name in (
         select 'scratch database ' || hashtext($1 || '_shadow')
         union select application_name from pg_database where datname = $1 and application_name like 'branch % of ' || oid)`,
      [name],
    );
    return rowCount !== 0;
  });
}
