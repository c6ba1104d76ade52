import { expect, test } from "vitest";
import { runMigrations } from "../../migrate/migrate.ts";
import { SAFE_SEARCH_PATH } from "../../postgres/client/search-path.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { createHostileSchema, HOSTILE_SCHEMA } from "../hostile-schema.ts";
import { ownHistories } from "./own-histories.ts";

/** The objects that depend on one of the hostile schema, and are not in it. */
const BOUND = `
  with hostile as (
    select oid from pg_proc where pronamespace = '${HOSTILE_SCHEMA}'::regnamespace
    union all select oid from pg_operator where oprnamespace = '${HOSTILE_SCHEMA}'::regnamespace
    union all select oid from pg_type where typnamespace = '${HOSTILE_SCHEMA}'::regnamespace
    union all select oid from pg_constraint where connamespace = '${HOSTILE_SCHEMA}'::regnamespace
    union all select oid from pg_class where relnamespace = '${HOSTILE_SCHEMA}'::regnamespace
    union all select pg_rewrite.oid from pg_rewrite join pg_class on pg_class.oid = ev_class
      where relnamespace = '${HOSTILE_SCHEMA}'::regnamespace
  )
  select pg_describe_object(classid, objid, objsubid) as object, pg_describe_object(refclassid, refobjid, refobjsubid) as "boundTo"
  from pg_depend where refobjid in (select oid from hostile) and objid not in (select oid from hostile)
    and objid not in (select reltoastrelid from pg_class)`;

test("nothing that the release creates is bound to objects of the database that have the names of Postgres's", async () => {
  await using own = await ownHistories();
  const { url } = own.settings;
  await withClient(url, (client) => createHostileSchema(client));
  await runMigrations({ name: "migrate" }, own.settings);
  const bound = await withClient(url, async (client) => {
    await client.query(`set search_path = ${SAFE_SEARCH_PATH}`);
    return (await client.query(BOUND)).rows;
  });
  expect(bound).toEqual([]);
});

test("a project's migrations keep the search path of the database", async () => {
  await using own = await ownHistories(["platform", "content"], { isMigrated: true });
  await own.add("project", "notes", "create table notes (id bigint primary key);");
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await own.rows("select to_regclass('public.notes') is not null as exists")).toEqual([{ exists: true }]);
});
