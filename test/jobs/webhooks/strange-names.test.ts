import pg from "pg";
import { expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";
import { startReceiver } from "./receiver.ts";

const SCHEMA = 'Ünit "A".b';
const TABLE = 'order; lines--."x';
const quoted = (name: string) => pg.escapeIdentifier(name);
const table = `${quoted(SCHEMA)}.${quoted(TABLE)}`;

const database = useDatabase({
  sql: `create schema ${quoted(SCHEMA)};
    grant usage on schema ${quoted(SCHEMA)} to service_role, authenticated;
    create table ${table} ("Id""s" int primary key, "record" text, "a b.c" text, "ключ$$" text);
    alter table ${table} enable row level security;
    create policy "p$$ "" '" on ${table} for select to authenticated using ("record" = 'shown' and "a b.c" is not null);
    grant select, insert, update on ${table} to service_role;
    grant select ("Id""s", "record", "ключ$$") on ${table} to authenticated;
    create function ${quoted(SCHEMA)}."mark; all"("the row" int) returns void language sql
      as $f$ update ${table} set "a b.c" = 'marked' where "Id""s" = "the row" $f$;
    grant execute on function ${quoted(SCHEMA)}."mark; all" to service_role`,
});
const owner = useClient(database.ownerUrl);
const receiver = useFixture(startReceiver);
useService({
  database,
  settings: { WEBHOOK_NETWORK: "loopback", PGRST_DB_SCHEMAS: `public, ${SCHEMA}` },
});

test("webhooks send changes of a table whose schema, name and columns need quotes", async () => {
  const add =
    "insert into api.webhooks (name, table_name, url, role, claims, \"where\") values ($1, $2, $3, $4, '{}', $5)";
  await owner.query(add, ["all", table, `${receiver.url}?all`, "service_role", null]);
  await owner.query(add, ["some", table, `${receiver.url}?some`, "authenticated", '"ключ$$"=eq.yes']);
  await owner.query(
    `insert into ${table} values (1, 'shown', 'x', 'yes'), (2, 'hidden', 'x', 'yes'), (3, 'shown', 'x', 'no')`,
  );
  await until(async () => (await owner.query("select from content_service.webhook_deliveries")).rowCount === 0);
  const sent = (query: string) =>
    receiver.requests.filter(({ path }) => path.endsWith(query)).map(({ body }) => JSON.parse(body));
  expect(sent("?some").map(({ schema, table: name, record }) => ({ schema, name, record }))).toEqual([
    { schema: SCHEMA, name: TABLE, record: { 'Id"s': 1, record: "shown", ключ$$: "yes" } },
  ]);
  expect(sent("?all")).toHaveLength(3);
});

test("schedules run functions of such a schema", async () => {
  await owner.query(
    `insert into api.schedules (name, cron, function, arguments, role)
      values ('odd "name"', '0 0 1 1 *', $1, '{"the row": 1}', 'service_role')`,
    [`${quoted(SCHEMA)}."mark; all"`],
  );
  await owner.query(`select api.run_schedule('odd "name"')`);
  const marked = `select from ${table} where "a b.c" = 'marked'`;
  await expect
    .poll(async () => {
      const { rows } = await owner.query("select status, error from api.schedule_runs");
      if (rows[0]?.error) throw new Error(JSON.stringify(rows));
      return (await owner.query(marked)).rowCount === 1;
    })
    .toBe(true);
});
