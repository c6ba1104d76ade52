import { randomUUID } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

export type TestDatabase = {
  readonly name: string;
  /** As the superuser who owns everything. */
  readonly ownerUrl: string;
  /** As `authenticator`, the login that requests use. */
  readonly url: string;
  drop(): Promise<void>;
};

/** "content" has all migrations, "platform" those of the platform, "empty" none (the API roles exist in the whole cluster). */
export type DatabaseTemplate = "content" | "platform" | "empty";

/** A database of one's own. */
export async function cloneDatabase(template: DatabaseTemplate = "content"): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await inMaintenance(`create database ${name} template ${template}`);
  return {
    name,
    ownerUrl: urlOf("postgres", name),
    url: urlOf("authenticator", name),
    drop: async () => {
      await inMaintenance(afterFarewells(name));
      await inMaintenance(`drop database ${name} with (force)`);
    },
  };
}

export function urlOf(role: string, database: string): string {
  return inject("clusterUrl").replace("ROLE", role).replace("DATABASE", database);
}

/** `pool.end()` does not wait for its sessions to end; one that is ended by force throws where nobody listens. */
function afterFarewells(name: string): string {
  return `do $$ begin
    for attempt in 1..20 loop
      perform pg_stat_clear_snapshot();
      exit when not exists (select from pg_stat_activity where datname = '${name}');
      perform pg_sleep(0.02);
    end loop;
  end $$`;
}

async function inMaintenance(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf("postgres", "postgres") });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
