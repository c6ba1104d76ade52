import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

const DB = join(import.meta.dirname, "../db");

const EXISTING_TRIGGERS = `
  select
    exists (
      select from pg_catalog.pg_event_trigger join pg_catalog.pg_proc on pg_proc.oid operator(pg_catalog.=) evtfoid
      where evtevent operator(pg_catalog.=) 'ddl_command_end' and evtenabled operator(pg_catalog.=) any ('{O,A}')
        and prosrc operator(pg_catalog.~~*) '%notify%' and pg_catalog.strpos(prosrc, $1) operator(pg_catalog.>) 0
    ) as "isNotified",
    pg_catalog.to_regproc('content_service.tg__schema_changed') is null or exists (
      select from pg_catalog.pg_event_trigger where evtname operator(pg_catalog.=) 'content_service_publish_rows'
    ) as "hasOwn"`;

/**
 * Returns the SQL with which a superuser creates the event triggers that report schema changes to the service. Null if there are
 * some, of the service or of PostgREST, and none is missing of those that the service's migrations create.
 */
export async function missingTriggerSql(client: pg.ClientBase, channel: string): Promise<string | null> {
  const { rows } = await client.query<{ isNotified: boolean; hasOwn: boolean }>(EXISTING_TRIGGERS, [channel]);
  const { isNotified, hasOwn } = rows[0]!;
  const parts = [
    ...(hasOwn ? [] : [await readFile(join(DB, "superuser.sql"), "utf8")]),
    ...(isNotified ? [] : [await schemaChangeTriggerSql(channel)]),
  ];
  return parts.length === 0 ? null : parts.join("\n");
}

/** The SQL of the triggers that notify the service. The function is the superuser's, as whom it runs. The channel is a literal, because DDL has no parameters. */
export async function schemaChangeTriggerSql(channel: string): Promise<string> {
  const sql = await readFile(join(DB, "watch.sql"), "utf8");
  // The literal is inside the body of a function, which $$ would end.
  if (channel.includes("$$")) throw new Error(`The name of the channel, ${channel}, must not contain $$.`);
  return sql.replaceAll("'pgrst'", () => pg.escapeLiteral(channel));
}
