import { randomUUID } from "node:crypto";
import pg from "pg";
import { beforeAll, inject } from "vitest";
import { withClient } from "../postgres/client/with-client.ts";
import { copyDatabase } from "./copy-database.ts";
import { aroundTests } from "./fixture.ts";

export type TestDatabase = {
  readonly name: string;
  /** Connects as the superuser who owns everything. */
  readonly ownerUrl: string;
  /** Connects as `authenticator`, the login that requests use. */
  readonly url: string;
  drop(): Promise<void>;
};

/**
 * "content" has all migrations, "platform" those of the platform, "empty" none (the API roles exist in the whole cluster). The first two have the
 * schema of the queue too, as each database that was served.
 */
export type DatabaseTemplate = "content" | "platform" | "empty";

/** Leaves a database with its migrations alone. */
export const DROP_QUEUE = "drop schema graphile_worker cascade";

export type DatabaseOptions = {
  readonly template?: DatabaseTemplate;
  /** Statements that the owner runs in it first. */
  readonly sql?: string;
};

/** A database for the tests of a file or of a `describe`. Its addresses are known at once. */
export function useDatabase({ template, sql }: DatabaseOptions = {}): TestDatabase {
  const database = nameDatabase();
  aroundTests(() => createDatabase(database.name, template), database.drop);
  if (sql !== undefined) beforeAll(() => withClient(database.ownerUrl, (owner) => owner.query(sql)));
  return database;
}

/** A client for the tests of a file or of a `describe`. */
export function useClient(connectionString: string): pg.Client {
  const client = new pg.Client({ connectionString });
  // A test that ends a backend is no reason to end the run.
  client.on("error", () => {});
  aroundTests(
    async () => {
      await client.connect();
    },
    () => client.end(),
  );
  return client;
}

/** A database that its caller drops. */
export async function cloneDatabase(template?: DatabaseTemplate): Promise<TestDatabase> {
  const database = nameDatabase();
  await createDatabase(database.name, template);
  return database;
}

function nameDatabase(): TestDatabase {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  return {
    name,
    ownerUrl: urlOf("postgres", name),
    url: urlOf("authenticator", name),
    drop: async () => {
      await withClient(urlOf("postgres", "postgres"), async (client) => {
        await client.query(afterSessions(name));
        await client.query(`drop database ${name} with (force)`);
      });
    },
  };
}

async function createDatabase(name: string, template: DatabaseTemplate = "content"): Promise<void> {
  await withClient(urlOf("postgres", "postgres"), (client) => copyDatabase(client, name, template));
}

export function urlOf(role: string, database: string): string {
  return inject("clusterUrl").replace("ROLE", role).replace("DATABASE", database);
}

/**
 * `pool.end()` does not wait for its sessions to end, and one that is terminated throws where nobody listens: so they are waited for
 * first. A reader of changes that is left then is terminated, since `drop database` refuses a database with an active slot.
 */
function afterSessions(name: string): string {
  return `do $$ begin
    for attempt in 1..20 loop
      perform pg_stat_clear_snapshot();
      exit when not exists (select from pg_stat_activity where datname = '${name}');
      perform pg_sleep(0.02);
    end loop;
    loop
      perform pg_terminate_backend(active_pid) from pg_replication_slots where database = '${name}' and active;
      exit when not found;
      perform pg_sleep(0.02);
    end loop;
  end $$`;
}
