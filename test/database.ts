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
  await inMaintenance(`create database ${name} template ${template} strategy file_copy`);
  return {
    name,
    ownerUrl: urlOf("postgres", name),
    url: urlOf("authenticator", name),
    drop: async () => {
      await inMaintenance(afterSessions(name));
      await inMaintenance(`drop database ${name} with (force)`);
    },
  };
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

async function inMaintenance(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf("postgres", "postgres") });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
