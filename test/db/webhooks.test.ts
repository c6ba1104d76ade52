import pg from "pg";
import { describe, expect, test } from "vitest";
import { urlOf, useClient, useDatabase } from "../database.ts";

const database = useDatabase();
const owner = useClient(database.ownerUrl);

let numbers = 0;
/** Makes a table with this definition and a webhook for it, and returns the changes that were recorded since the last call. */
async function record(definition: string, webhook: Record<string, unknown> = {}) {
  const table = `watched_${++numbers}`;
  await owner.query(definition.replaceAll("TABLE", table));
  await addWebhook({ table_name: table, ...webhook });
  return {
    table,
    async recorded(...statements: string[]) {
      for (const statement of statements) await owner.query(statement.replaceAll("TABLE", table));
      const { rows } = await owner.query(
        `with recorded as (delete from content_service.webhook_deliveries returning *)
         select type, key, moved_to, old, new from recorded order by id`,
      );
      return rows;
    },
  };
}

function addWebhook(
  values: Record<string, unknown>,
): Promise<{ rows: { id: string; table_name: string; secret: string }[] }> {
  const row = { name: `webhook ${numbers}`, url: "https://example.com/", role: "service_role", ...values };
  const names = Object.keys(row).map((name) => `"${name}"`);
  const text = `insert into api.webhooks (${names}) values (${names.map((_, at) => `$${at + 1}`)}) returning *`;
  return owner.query(text, Object.values(row));
}

const PLAIN = "create table public.TABLE (id integer primary key, note text)";

describe("recording changes for webhooks", () => {
  test("a statement records each of its rows, with old and new values in pairs", async () => {
    const { recorded } = await record(PLAIN);
    expect(
      await recorded(
        "insert into TABLE select number, 'a' from generate_series(1, 3) as number",
        "update TABLE set note = 'b' || id where id <> 2",
        "delete from TABLE where id = 2",
      ),
    ).toEqual([
      ...[1, 2, 3].map((id) => ({
        type: "INSERT",
        key: String(id),
        moved_to: null,
        old: null,
        new: { id, note: "a" },
      })),
      ...[1, 3].map((id) => ({
        ...{ type: "UPDATE", key: String(id), moved_to: null },
        ...{ old: { id, note: "a" }, new: { id, note: `b${id}` } },
      })),
      { type: "DELETE", key: "2", moved_to: null, old: { id: 2, note: "a" }, new: null },
    ]);
  });

  test("an upsert and a MERGE record what each row was subject to", async () => {
    const { recorded } = await record(PLAIN);
    const upsert = "insert into TABLE values (1, 'x'), (2, 'y') on conflict (id) do update set note = 'again'";
    expect(
      (await recorded("insert into TABLE values (1)", upsert)).map(({ type, key }) => `${type} ${key}`).sort(),
    ).toEqual(["INSERT 1", "INSERT 2", "UPDATE 1"]);
  });

  test("rows keep their pairs when their keys are permuted", async () => {
    const { recorded } = await record("create table public.TABLE (id integer primary key deferrable, note integer)");
    const rows = await recorded(
      "insert into TABLE select number, number from generate_series(1, 500) as number",
      "update TABLE set id = 501 - id",
    );
    const updates = rows.filter(({ type }) => type === "UPDATE");
    expect(updates).toHaveLength(500);
    for (const { key, moved_to, old, new: row } of updates) {
      expect(row.note).toBe(old.note);
      expect([key, moved_to]).toEqual([String(old.id), String(row.id)]);
    }
  });

  test.each([
    ["of several columns", "create table public.TABLE (a text, b int, c int, primary key (c, a))", `[3, "x"]`],
    ["of none", "create table public.TABLE (a text, b int, c int)", ""],
  ])("a key %s names the row", async (_, definition, key) => {
    const { recorded } = await record(definition);
    const [inserted] = await recorded("insert into TABLE values ('x', 2, 3)");
    expect(inserted.key).toBe(key);
  });

  test("a partitioned table records writes to itself and to its partitions, also to later ones", async () => {
    const { table, recorded } = await record(
      "create table public.TABLE (id int primary key) partition by range (id);" +
        "create table public.TABLE_a partition of public.TABLE for values from (0) to (10)",
    );
    await owner.query(`create table public.${table}_b partition of public.${table} for values from (10) to (20)`);
    const rows = await recorded(
      "insert into TABLE values (1)",
      "insert into TABLE_b values (11)",
      "update TABLE set id = 2 where id = 1",
      "update TABLE set id = 12 where id = 2",
      "delete from TABLE where id = 11",
    );
    expect(rows.map(({ type, key }) => `${type} ${key}`)).toEqual([
      ...["INSERT 1", "INSERT 11", "UPDATE 1"],
      ...["DELETE 2", "INSERT 12", "DELETE 11"],
    ]);
  });

  test("a row that is too large is recorded by its key, and its writer does not fail", async () => {
    const { recorded } = await record(PLAIN);
    const rows = await recorded(
      "insert into TABLE values (1, repeat('x', 2000000)), (2, repeat(md5('a'), 10000))",
      // The row takes more than a gigabyte as JSON.
      String.raw`insert into TABLE values (3, repeat(E'\x01', 200000000))`,
      "delete from TABLE where id = 1",
    );
    expect(rows.map(({ key, old, new: row }) => [key, old, row?.note === undefined ? row : "whole"])).toEqual([
      ["1", null, { id: 1, "": true }],
      ["2", null, "whole"],
      ["", null, { "": true }],
      ["1", { id: 1, "": true }, null],
    ]);
  });

  test("a column may have the name of anything in the function of the trigger", async () => {
    const names = [
      "n",
      "o",
      "image",
      "number",
      "before",
      "after",
      "v_keys",
      "v_webhook",
      "v_old",
      "tg_op",
      "new_rows",
      "row",
    ];
    await owner.query("create type public.pair as (a int, b text)");
    const columns = names.map((name) => `"${name}" public.pair default (1, 'column')`);
    const { recorded } = await record(`create table public.TABLE (id int primary key, note text, ${columns})`);
    const rows = await recorded(
      "insert into TABLE (id, note) values (1, 'a')",
      "update TABLE set note = 'b'",
      "delete from TABLE",
    );
    const images = rows.map(({ key, old, new: row }) => [key, old?.id, old?.note, row?.id, row?.note]);
    expect(images).toEqual([
      ["1", undefined, undefined, 1, "a"],
      ["1", 1, "a", 1, "b"],
      ["1", 1, "b", undefined, undefined],
    ]);
  });

  test("a long key can be changed", async () => {
    const { recorded } = await record("create table public.TABLE (key bytea primary key)");
    const key =
      "(select string_agg(sha256(convert_to(number::text, 'UTF8')), '') from generate_series(1, 80) as number)";
    const rows = await recorded(`insert into TABLE select ${key}`, "update TABLE set key = key || '\\x01'");
    expect(rows.map(({ type, key, moved_to }) => [type, key.length, moved_to?.length])).toEqual([
      ["INSERT", 5122, undefined],
      ["UPDATE", 5122, 5124],
    ]);
  });

  test("a row has the same key whatever the settings of its writer are", async () => {
    const { recorded } = await record(
      "create table public.TABLE (at timestamptz, span interval, code bytea, size real, primary key (at, span, code, size))",
    );
    const rows = await recorded(
      "insert into TABLE values ('2026-01-01 00:00:00Z', '1 day 2 hours', 'code', 1.1)",
      "set timezone = 'Asia/Tokyo'; set intervalstyle = iso_8601; set bytea_output = escape; set extra_float_digits = -3",
      "update TABLE set size = 1.25",
      "reset timezone; reset intervalstyle; reset bytea_output; reset extra_float_digits",
    );
    const key = '["2026-01-01T00:00:00+00:00", "1 day 02:00:00", "\\\\x636f6465", 1.1]';
    expect(rows.map((row) => [row.type, row.key])).toEqual([
      ["INSERT", key],
      ["UPDATE", key],
    ]);
  });

  test("a table that has become a partition is recorded when its root is written", async () => {
    const { table, recorded } = await record("create table public.TABLE (id int primary key)", { events: ["INSERT"] });
    await owner.query(
      `create table public.${table}_root (id int primary key) partition by range (id);
      alter table public.${table}_root attach partition public.${table} for values from (0) to (10)`,
    );
    await owner.query("select content_service.maintain_webhooks()");
    expect(await recorded("insert into TABLE_root values (1)", "insert into TABLE values (2)")).toHaveLength(2);
    await owner.query(`drop table ${table}_root`);
  });

  test("only the chosen events are recorded, and none while the webhook is off", async () => {
    const { recorded } = await record(PLAIN, { events: ["DELETE"], name: "off and on" });
    expect(await recorded("insert into TABLE values (1), (2)", "delete from TABLE where id = 1")).toHaveLength(1);
    await owner.query("update api.webhooks set is_enabled = false where name = 'off and on'");
    expect(await recorded("delete from TABLE")).toHaveLength(0);
    await owner.query("update api.webhooks set is_enabled = true, events = '{INSERT}' where name = 'off and on'");
    expect(await recorded("insert into TABLE values (3)", "delete from TABLE")).toHaveLength(1);
    await owner.query("delete from api.webhooks where name = 'off and on'");
    expect(await recorded("insert into TABLE values (4)")).toHaveLength(0);
    expect(
      (
        await owner.query("select from pg_trigger where tgname like '%webhook%' and tgrelid = $1::regclass", [
          `watched_${numbers}`,
        ])
      ).rowCount,
    ).toBe(0);
  });

  test("a table that was renamed is recorded further, under its new name", async () => {
    const { table, recorded } = await record(PLAIN, { name: "renamed" });
    await owner.query(`alter table ${table} rename to renamed_table`);
    expect(await recorded("insert into renamed_table values (1)")).toHaveLength(1);
    await owner.query("select content_service.maintain_webhooks()");
    const { rows } = await owner.query("select table_name from api.webhooks where name = 'renamed'");
    expect(rows).toEqual([{ table_name: "public.renamed_table" }]);
    expect(await recorded("insert into renamed_table values (2)")).toHaveLength(1);
    await owner.query("drop table renamed_table; delete from api.webhooks where name = 'renamed'");
  });

  test("triggers that are missing, as in a restored database, are created again", async () => {
    const { recorded } = await record(PLAIN, { name: "restored" });
    await owner.query("select content_service.drop_webhook_triggers(id) from api.webhooks where name = 'restored'");
    expect(await recorded("insert into TABLE values (1)")).toHaveLength(0);
    await owner.query("select content_service.maintain_webhooks()");
    expect(await recorded("insert into TABLE values (2)", "delete from TABLE")).toHaveLength(3);
  });

  test("deliveries without a webhook are deleted", async () => {
    await owner.query(
      "insert into content_service.webhook_deliveries (webhook_id, type, key) select gen_random_uuid(), 'INSERT', '' from generate_series(1, 3)",
    );
    await owner.query("select content_service.maintain_webhooks()");
    expect((await owner.query("select from content_service.webhook_deliveries")).rowCount).toBe(0);
  });

  test("every role of requests writes under it, and reads nothing of it", async () => {
    const { table, recorded } = await record(PLAIN);
    await owner.query(`grant insert on ${table} to anon, authenticated, service_role, admin`);
    for (const [at, role] of ["anon", "authenticated", "service_role", "admin"].entries()) {
      const client = new pg.Client({ connectionString: urlOf("authenticator", database.name) });
      await client.connect();
      await client.query(`set role ${role}`);
      await client.query(`insert into ${table} values (${at})`);
      const statements = [
        "select secret from api.webhooks",
        "insert into api.webhooks (name) values ('x')",
        "select from content_service.webhook_deliveries",
        "delete from content_service.webhook_leases",
        "select api.replay_webhook_deliveries('x')",
        "select api.discard_webhook_deliveries('x')",
      ];
      for (const text of statements) await expect(client.query(text)).rejects.toMatchObject({ code: "42501" });
      await client.end();
    }
    expect(await recorded()).toHaveLength(4);
  });
});

describe("a webhook", () => {
  test.each([
    ["names no table", { table_name: "nothing" }, "WRONG"],
    ["names no valid table", { table_name: '"' }, "WRONG"],
    ["names a table of the service", { table_name: "content_service.tasks" }, "WRONG"],
    ["names a view", { table_name: "pg_catalog.pg_tables" }, "WRONG"],
    ["has an unknown event", { events: ["TRUNCATE"] }, "23514"],
    ["has no events", { events: [] }, "23514"],
    ["has a URL without a scheme", { url: "example.com" }, "23514"],
    ["has a URL with a password", { url: "https://me:secret@example.com/" }, "23514"],
    ["has a short secret", { secret: "whsec_abc" }, "23514"],
    ["names no role", { role: "nobody_at_all" }, "WRONG"],
    ["names the owner as its role", { role: "postgres" }, "WRONG"],
    ["has a timeout of no time", { timeout: "0 seconds" }, "23514"],
  ])("that %s is refused", async (_, values, code) => {
    await expect(addWebhook({ table_name: "users", name: "refused", ...values })).rejects.toMatchObject({ code });
  });

  test("has the qualified name of its table, and a secret of its own", async () => {
    const first = (await addWebhook({ table_name: "users", name: "first" })).rows[0]!;
    const second = (await addWebhook({ table_name: "public.users", name: "second" })).rows[0]!;
    expect(first.table_name).toBe("public.users");
    expect(first.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(second.secret).not.toBe(first.secret);
  });
});
