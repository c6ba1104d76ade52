import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import { useFixture } from "../fixture.ts";
import { connect, makeFixture, tableOf } from "./fixture.ts";

const fixture = useFixture(makeFixture);
const migration = useFixture(() => connect(fixture.ownerUrl));
beforeEach(async () => {
  await fixture.owner.query(`
    drop table if exists api.parcels, api.couriers, api.created_meanwhile cascade;
    create table api.couriers (id int primary key, name text);
    create table api.parcels (
      id int primary key, weight int default 1 + 1, doubled int generated always as (weight * 2) stored,
      check (weight > 0)
    );
    create unique index parcels_weight on api.parcels (weight) where weight > 10;
    create view api.heavy_parcels as select * from api.parcels where weight > 100;
    create policy couriers_only on api.parcels using (id in (select id from api.couriers));`);
});

const load = async (previous?: Awaited<ReturnType<typeof fixture.load>>) =>
  loadCatalog(fixture.owner, fixture.options, previous ?? null);

describe("a table that a migration has locked", () => {
  for (const table of ["parcels", "couriers"]) {
    test(`keeps its expressions while ${table} is locked, and other tables are followed`, async () => {
      const before = await fixture.load();
      await migration.query(`begin; lock table api.${table} in access exclusive mode`);
      await fixture.owner.query("create table api.created_meanwhile (id int)");
      const { catalog, isProvisional } = await load(before);
      await migration.query("rollback");
      expect(isProvisional).toBe(true);
      expect(catalog.findTable({ schema: "api", name: "created_meanwhile" })).toBeDefined();
      for (const name of ["parcels", "heavy_parcels"]) {
        const { policies, checks, columns, indexes, uniqueKeys, insertable } = tableOf(before, name);
        expect(tableOf(catalog, name)).toMatchObject({ policies, checks, columns, indexes, uniqueKeys, insertable });
      }
      expect(tableOf(catalog, "parcels").policies[0]?.using).toContain("couriers");

      const afterwards = await load(catalog);
      expect(afterwards).toMatchObject({ catalog, isProvisional: false });
    });
  }

  test("lets nobody pass its policies if they were never read", async () => {
    await fixture.owner.query("alter table api.parcels rename to hidden_parcels");
    const before = await fixture.load();
    await fixture.owner.query("create policy later on api.hidden_parcels using (weight < 5)");
    await migration.query("begin; lock table api.hidden_parcels in access exclusive mode");
    const { catalog } = await load(before);
    await migration.query("rollback; drop table api.hidden_parcels cascade");
    const usings = tableOf(catalog, "hidden_parcels").policies.map(({ name, using }) => [name, using]);
    expect(usings).toEqual([
      ["couriers_only", expect.stringContaining("couriers")],
      ["later", "false"],
    ]);
  });
});

describe("a load", () => {
  test("holds no lock on a table after the statement that printed its policies", async () => {
    const held: string[] = [];
    const observed = new Proxy(fixture.owner, {
      get(client, property) {
        if (property !== "query") return Reflect.get(client, property);
        return async (...given: Parameters<pg.Client["query"]>) => {
          const result = await client.query(...given);
          const locks = await migration.query<{ name: string }>(
            `select distinct relation::regclass::text as name from pg_locks
             where pid <> pg_backend_pid() and relation in ('api.parcels'::regclass, 'api.couriers'::regclass)`,
          );
          const isPrinting = JSON.stringify(given).includes("pg_get_expr");
          if (!isPrinting) held.push(...locks.rows.map(({ name }) => name));
          return result;
        };
      },
    });
    await loadCatalog(observed, fixture.options, null);
    expect(held).toEqual([]);
    const control = await migration.query(
      "begin; select pg_get_expr(polqual, polrelid) from pg_policy; select count(*)::int as count from pg_locks where relation = 'api.couriers'::regclass",
    );
    await migration.query("rollback");
    expect((control as unknown as pg.QueryResult[]).at(-1)?.rows).toEqual([{ count: 1 }]);
  });

  test("is never the reason why a migration ends in a deadlock", async () => {
    let isOver = false;
    let loads = 0;
    const reading = (async () => {
      let catalog = await fixture.load();
      for (; !isOver; loads++) ({ catalog } = await load(catalog));
    })().finally(() => (isOver = true));
    // On a slow machine the first loads take all of 25 rounds.
    for (let round = 0; round < 25 || (loads < 2 && !isOver); round++) {
      await migration.query(`
        begin;
        create table api.brief_a (id int primary key);
        create table api.brief_b (id int primary key references api.brief_a);
        create policy by_a on api.brief_b using (id in (select id from api.brief_a));
        create policy by_b on api.brief_a using (id in (select id from api.brief_b));
        commit`);
      await migration.query("begin; alter table api.brief_b add n int; alter table api.brief_a add n int; commit");
      await migration.query("drop table api.brief_a, api.brief_b cascade");
    }
    isOver = true;
    await reading;
    expect(loads).toBeGreaterThan(1);
  });
});
