import { once } from "node:events";
import { withClient } from "../postgres/client/with-client.ts";
import { type TestDatabase, urlOf } from "./database.ts";
import { openWire } from "./postgres-wire.ts";
import { run } from "./program.ts";
import { SECRET } from "./secret.ts";
import { until } from "./until.ts";

type KilledCommand = {
  readonly database: Pick<TestDatabase, "name">;
  /** Such as `branch`. */
  readonly command: string;
  readonly words: readonly string[];
  readonly settings?: NodeJS.ProcessEnv;
  /** Which statements it is killed at. */
  readonly isStep: RegExp;
};

/**
 * Runs a command again and again, each time killed by SIGKILL at a later statement: the statement reaches Postgres, which runs it to its
 * end, and nobody hears the result. Ends when a run has no step left, and returns the number of steps.
 */
export async function killAtEachStep(
  { database, command, words, settings = {}, isStep }: KilledCommand,
  check: (statement: string) => Promise<void>,
): Promise<number> {
  for (let step = 0; ; step++) {
    let seen = 0;
    let killedAt: string | null = null;
    const listen = () => (said: Buffer) => {
      const statement = statementIn(said);
      if (!isStep.test(statement) || killedAt !== null || seen++ < step) return;
      killedAt = statement;
      child.kill("SIGKILL");
    };
    const wire = await openWire(urlOf("postgres", database.name), { listen });
    const urlTo = (role: string, name: string) =>
      wire.url.replace("//postgres@", `//${role}@`).replace(/\/[^/]*$/, `/${name}`);
    const { child, streams } = run(
      `service/cli/${command}.ts`,
      {
        DATABASE_URL: urlTo("authenticator", database.name),
        OWNER_DATABASE_URL: urlTo("postgres", database.name),
        SHADOW_DATABASE_URL: urlTo("postgres", `${database.name}_shadow`),
        ROOT_DATABASE_URL: urlTo("postgres", "postgres"),
        JWT_SECRET: SECRET,
        ...settings,
      },
      { args: words },
    );
    const [code] = await once(child, "close");
    await wire.close();
    await until(async () => !(await hasSessions(database.name)));
    if (killedAt === null) {
      if (code !== 0) throw new Error(`It ended with ${code}:\n${streams.logged}`);
      return step;
    }
    await check(killedAt);
  }
}

/** Of a simple query or a parsed one, which clients send first; empty for other messages. */
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
