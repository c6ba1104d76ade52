import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

const TRIGGER_FILE = join(import.meta.dirname, "../../db/watch.sql");

/** Whether an event trigger, of the service or of PostgREST, notifies the channel of schema changes. */
export async function hasSchemaChangeTrigger(client: pg.ClientBase, channel: string): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select exists (
      select from pg_event_trigger join pg_proc on pg_proc.oid = evtfoid
      where evtevent = 'ddl_command_end' and evtenabled in ('O', 'A')
        and prosrc ilike '%notify%' and position($1 in prosrc) > 0
    ) as "exists"`,
    [channel],
  );
  return rows[0]!.exists;
}

/** The SQL that creates such a trigger. The channel is a literal, because DDL has no parameters. */
export async function schemaChangeTriggerSql(channel: string): Promise<string> {
  const sql = await readFile(TRIGGER_FILE, "utf8");
  // The literal is inside the body of a function, which $$ would end.
  if (channel.includes("$$")) throw new Error(`The name of the channel, ${channel}, must not contain $$.`);
  return sql.replaceAll("'pgrst'", () => pg.escapeLiteral(channel));
}
