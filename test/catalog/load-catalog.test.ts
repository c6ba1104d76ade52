import type pg from "pg";
import { describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import { urlOf } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { connect, makeFixture, tableOf } from "./fixture.ts";

const fixture = useFixture(makeFixture);

async function asLogin<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = await connect(urlOf(fixture.role("login"), fixture.name));
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

describe("loading the catalogue", () => {
  test("gives the same content to the owner and to a login that owns nothing", async () => {
    const owners = await fixture.load();
    const logins = await asLogin((client) => loadCatalog(client, fixture.options));
    expect(logins.catalog.hash).toBe(owners.hash);
    expect(logins.catalog.version).toBe(1);
  });

  test("returns the previous catalogue if nothing differs, and otherwise one with the next version", async () => {
    const first = await fixture.load();
    expect(await fixture.load(first)).toBe(first);
    await fixture.owner.query("comment on table api.actors is 'They act'");
    const second = await fixture.load(first);
    expect(second.version).toBe(2);
    expect(second.hash).not.toBe(first.hash);
    expect([tableOf(first, "actors").comment, tableOf(second, "actors").comment]).toEqual([null, "They act"]);
    await fixture.owner.query("comment on table api.actors is null");
    expect((await fixture.load(second)).hash).toBe(first.hash);
  });

  test("leaves the session as it was, also when it fails", async () => {
    const session = async () => {
      const { rows } = await fixture.owner.query(
        "select current_setting('search_path') as path, current_setting('jit') as jit, now() = statement_timestamp() as idle",
      );
      return rows[0];
    };
    const before = await session();
    await fixture.load();
    expect(await session()).toEqual(before);

    const other = await connect(fixture.ownerUrl);
    await other.query("begin; lock table api.film_titles in access exclusive mode");
    const failing = expect(fixture.load()).rejects.toMatchObject({ code: "57014" });
    const cancelled = () =>
      other.query(
        "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
    while ((await cancelled()).rowCount === 0);
    await failing;
    await other.query("rollback");
    await other.end();
    expect(await session()).toEqual(before);
  });

  test("reads the server version, its time zones and extensions", async () => {
    const { server, timeZones, extensions } = await fixture.load();
    const { rows } = await fixture.owner.query("select current_setting('server_version_num')::int as version");
    expect(server.version).toBe(rows[0].version);
    expect(timeZones.has("America/Montevideo")).toBe(true);
    expect(extensions.get("pg_trgm")).toMatchObject({ schema: "Odd Schema" });
  });

  test("reads time zones only if the options request them", async () => {
    const load = async (timeZones: boolean, previous?: Catalog) =>
      (await loadCatalog(fixture.owner, { ...fixture.options, timeZones }, previous)).catalog;
    const without = await load(false, await load(true));
    expect(without.timeZones.size).toBe(0);
    expect((await load(true, without)).timeZones.has("America/Montevideo")).toBe(true);
  });

  test("other exposed schemas make another catalogue of the same database", async () => {
    const { catalog } = await loadCatalog(fixture.owner, fixture.options);
    const schemas = fixture.options.schemas.toReversed();
    const { catalog: turned } = await loadCatalog(fixture.owner, { ...fixture.options, schemas }, catalog);
    expect([...turned.schemas.keys()].slice(0, 2)).toEqual(schemas);
    expect(turned.version).toBe(catalog.version + 1);
  });

  test("does without schemas that do not exist, and without roles", async () => {
    const { catalog } = await loadCatalog(fixture.owner, {
      schemas: ["nowhere"],
      extraSearchPath: [],
      loginRole: "nobody at all",
    });
    expect(catalog.schemas.size).toBe(0);
    expect(catalog.roles.size).toBe(0);
  });

  test("reports how long each subject took", async () => {
    const { timings } = await loadCatalog(fixture.owner, fixture.options);
    expect(Object.keys(timings)).toEqual(expect.arrayContaining(["tables", "columns", "routines", "views", "total"]));
  });
});
