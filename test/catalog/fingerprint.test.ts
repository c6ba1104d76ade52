import { describe, expect, test } from "vitest";
import { readFingerprint } from "../../catalog/catalog-watch.ts";
import { useFixture } from "../fixture.ts";
import { connect, makeFixture } from "./fixture.ts";

const fixture = useFixture(makeFixture);

const digest = async () => (await readFingerprint(fixture.owner)).digest;
/** Roles of other tests come and go in this cluster, and count: another try tells them from the change at hand. */
const ATTEMPTS = 20;

async function isUnmovedBy(change: () => Promise<unknown>): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await digest();
    await change();
    if ((await digest()) === before) return true;
  }
  return false;
}

describe("the fingerprint changes with", () => {
  test.each([
    ["a new table", "create table api.fresh (id int)"],
    ["a new column", "alter table api.fresh add name text"],
    ["a column that may not be null any more", "alter table api.fresh alter name set not null"],
    ["a default", "alter table api.fresh alter name set default 'x'"],
    ["a changed default", "alter table api.fresh alter name set default 'y'"],
    ["a renamed column", "alter table api.fresh rename name to title"],
    ["a comment on a column", "comment on column api.fresh.title is 'x'"],
    ["a changed comment", "comment on column api.fresh.title is 'y'"],
    ["a comment on a schema", "comment on schema public is 'z'"],
    ["a grant on a table", "grant select on api.fresh to public"],
    ["a revoke", "revoke select on api.fresh from public"],
    ["a grant on a column", "grant select (title) on api.fresh to public"],
    ["a grant on a schema", "grant usage on schema extra to public"],
    ["a grant on a function", "grant execute on function api.add(text) to public"],
    ["row security", "alter table api.fresh enable row level security"],
    ["a policy", "create policy mine on api.fresh using (true)"],
    ["a changed policy", "alter policy mine on api.fresh using (false)"],
    ["a check", "alter table api.fresh add constraint positive check (id > 0)"],
    ["a primary key", "alter table api.fresh add primary key (id)"],
    ["a foreign key", "alter table api.fresh add foreign key (id) references api.actors"],
    ["an index", "create index on api.fresh (title)"],
    ["an enum value", "alter type api.colour add value 'blue'"],
    ["a renamed enum value", "alter type api.colour rename value 'blue' to 'azure'"],
    ["a domain's check", "alter domain api.code add constraint long check (length(value) > 1)"],
    ["an attribute of a type", "alter type api.money_amount add attribute note text"],
    [
      "a replaced function",
      "create or replace function api.film_csv() returns api.\"text/csv\" language sql stable as $$ select '' $$",
    ],
    ["a function's setting", "alter function api.forget() set lock_timeout = '1s'"],
    ["a replaced view", "create or replace view api.nothing as select 1 as one"],
    ["a hidden table's column", "alter table hidden.people rename full_name to whole_name"],
    ["an instead-of trigger", "drop trigger editable_insert on api.editable"],
    ["a dropped function", "drop function api.pairs()"],
    ["a dropped view", "drop view api.film_pairs"],
    ["a dropped table", "drop table api.fresh"],
    ["a cast", "drop cast (api.code as json)"],
    ["a membership", "grant ROLE_outside to ROLE_login"],
    ["a role's setting", "alter role ROLE_user set work_mem = '5MB'"],
    ["a role's setting here", "alter role ROLE_user in database DATABASE set work_mem = '6MB'"],
    ["a setting of the database", "alter database DATABASE set app.answer = '43'"],
    ["an attribute of a role", "alter role ROLE_anon bypassrls"],
    ["an extension", "drop extension pg_trgm"],
  ])("%s", async (_what, change) => {
    const before = [await digest(), (await fixture.load()).hash];
    await fixture.owner.query(change.replaceAll("ROLE_", fixture.role("")).replaceAll("DATABASE", fixture.name));
    expect(await digest()).not.toBe(before[0]);
    // It would be of no use if the catalogue had no eye for it.
    expect((await fixture.load()).hash).not.toBe(before[1]);
  });
});

describe("the fingerprint does not change with", () => {
  test.each([
    ["rows written", "insert into api.actors select i, 'x' from generate_series(1, 100) i on conflict do nothing"],
    ["rows truncated", "truncate api.awards"],
    ["a refreshed materialized view", "refresh materialized view api.recent_films"],
    [
      "a temporary table",
      "create temporary table t (id serial primary key, v text default 'x' check (v <> '')); drop table t",
    ],
    ["a password", "alter role ROLE_login password 'secret'"],
    ["a notification", "notify something"],
    ["statistics", "analyze api.actors"],
  ])("%s", async (_what, change) => {
    const { hash } = await fixture.load();
    const text = change.replaceAll("ROLE_", fixture.role(""));
    expect(await isUnmovedBy(() => fixture.owner.query(text))).toBe(true);
    expect((await fixture.load()).hash).toBe(hash);
  });

  test("vacuum, of the system catalogues too", async () => {
    const analyse = async () => {
      await fixture.owner.query("vacuum (analyze) pg_catalog.pg_class");
      await fixture.owner.query("vacuum (freeze) pg_catalog.pg_attribute");
      await fixture.owner.query("vacuum api.actors");
    };
    expect(await isUnmovedBy(analyse)).toBe(true);
  });
});

test("without a commit, the rows are not read again", async () => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const known = await readFingerprint(fixture.owner);
    const seen = await readFingerprint(fixture.owner, { ...known, digest: "kept" });
    if (seen.snapshot !== known.snapshot) continue;
    expect(seen.digest).toBe("kept");
    return;
  }
  throw new Error("This cluster is never quiet");
});

test("a transaction that was open when the fingerprint was taken is detected when it commits", async () => {
  const other = await connect(fixture.ownerUrl);
  await other.query("begin; create table api.late (id int)");
  const before = await readFingerprint(fixture.owner);
  await other.query("commit");
  await other.end();
  expect((await readFingerprint(fixture.owner, before)).digest).not.toBe(before.digest);
});
