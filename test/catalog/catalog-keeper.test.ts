import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { type CatalogKeeper, type CatalogKeeperOptions, keepCatalog } from "../../catalog/catalog-keeper.ts";
import { type Listener, openListener } from "../../postgres/client/listen.ts";
import { until } from "../until.ts";
import { type Fixture, makeFixture, tableOf } from "./fixture.ts";

const NEVER = 1_000_000;
const log = { info: () => {}, warn: () => {}, error: () => {} };

let fixture: Fixture;
let pool: pg.Pool;
const opened: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  fixture = await makeFixture();
  pool = new pg.Pool({ connectionString: fixture.ownerUrl });
  pool.on("error", () => {});
});
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
  await pool.end();
  await fixture.drop();
});

async function lend<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  client.on("error", () => {});
  let broken = true;
  try {
    const result = await work(client);
    broken = false;
    return result;
  } finally {
    client.release(broken);
  }
}

async function keep(options: Partial<CatalogKeeperOptions> = {}): Promise<CatalogKeeper> {
  const keeper = await keepCatalog({
    ...fixture.options,
    asOwner: lend,
    listener: null,
    channel: "pgrst",
    log,
    debounceMs: 10,
    pollIntervalMs: NEVER,
    ...options,
  });
  opened.push(keeper);
  return keeper;
}

function listen(): Listener {
  const listener = openListener({ url: fixture.ownerUrl, log });
  opened.push(listener);
  return listener;
}

const has = (keeper: CatalogKeeper, name: string) => keeper.current().schemas.get("api")!.tables.has(name);
const listensTo = async (channel: string) =>
  (
    await fixture.owner.query("select from pg_stat_activity where datname = current_database() and query ilike $1", [
      `%listen "${channel}"%`,
    ])
  ).rowCount! > 0;

describe("changes are detected", () => {
  test("by polling, without a notification", async () => {
    const keeper = await keep({ pollIntervalMs: 20 });
    await fixture.owner.query("create table api.fresh (id int)");
    await until(() => has(keeper, "fresh"));
    await fixture.owner.query("drop table api.fresh");
    await until(() => !has(keeper, "fresh"));
    const { confirmedAt, version } = keeper.state();
    await until(() => keeper.state().confirmedAt > confirmedAt);
    expect(keeper.state()).toMatchObject({ status: "current", version });
  });

  test("soon after a request named an unknown object, however long the polling interval", async () => {
    const keeper = await keep({ pollIntervalMs: NEVER });
    for (const name of ["first", "second"]) {
      await fixture.owner.query(`create table api.${name} (id int)`);
      keeper.checkSoon();
      await expect.poll(() => has(keeper, name)).toBe(true);
    }
  });

  test("of grants, which change the privileges of roles", async () => {
    const keeper = await keep({ pollIntervalMs: 20 });
    const may = () =>
      keeper.current().hasPrivilege(fixture.role("anon"), "insert", tableOf(keeper.current(), "actors"), "id");
    expect(may()).toBe(false);
    await fixture.owner.query(`grant insert (id) on api.actors to ${fixture.role("anon")}`);
    await until(may);
    await fixture.owner.query(`revoke insert (id) on api.actors from ${fixture.role("anon")}`);
    await until(() => !may());
  });

  test.each(["reload schema", "reload config", ""])("after the notification %j", async (payload) => {
    const keeper = await keep({ listener: listen() });
    await until(() => listensTo("pgrst"));
    await fixture.owner.query("create table api.fresh (id int)");
    await fixture.owner.query("select pg_notify('pgrst', $1)", [payload]);
    await expect.poll(() => has(keeper, "fresh")).toBe(true);
  });

  test("on a channel with another name, and not by other notifications", async () => {
    const keeper = await keep({ listener: listen(), channel: "Other channel" });
    await until(() => listensTo("Other channel"));
    await fixture.owner.query("create table api.fresh (id int)");
    await fixture.owner.query(`notify "Other channel", 'something else'; notify pgrst`);
    await sleep(100);
    expect(has(keeper, "fresh")).toBe(false);
    await fixture.owner.query(`notify "Other channel"`);
    await until(() => has(keeper, "fresh"));
  });

  test("after the listener lost its connection and missed notifications", async () => {
    const keeper = await keep({ listener: listen() });
    await until(() => listensTo("pgrst"));
    await fixture.owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike '%listen \"pgrst\"%' and pid <> pg_backend_pid()",
    );
    await fixture.owner.query("create table api.fresh (id int); notify pgrst");
    await expect.poll(() => has(keeper, "fresh")).toBe(true);
  });
});

describe("a new catalogue", () => {
  test("has the next version and is passed to listeners, with the previous one", async () => {
    const keeper = await keep();
    const first = keeper.current();
    const result: [Catalog, Catalog][] = [];
    keeper.onChange(() => {
      throw new Error("a follower that fails must not stop the others");
    });
    keeper.onChange((catalog, previous) => result.push([catalog, previous]));
    const leave = keeper.onChange(() => result.push([first, first]));
    leave();
    await fixture.owner.query("comment on table api.films is 'changed'");
    await keeper.reload();
    expect(keeper.current().version).toBe(first.version + 1);
    expect(result).toEqual([[keeper.current(), first]]);
    expect(tableOf(first, "films").comment).toBe("A film");
  });

  test("is not created if nothing differs", async () => {
    const keeper = await keep();
    const first = keeper.current();
    await fixture.owner.query("create temporary table t (id int); truncate api.awards");
    await keeper.reload();
    await fixture.owner.query("create table hidden.t (id int)");
    await keeper.reload();
    expect(keeper.current()).toBe(first);
  });

  test("is not created by the new body of a function that is not exposed, and the difference is reported all the same", async () => {
    const decide = (body: string) =>
      fixture.owner.query(`create or replace function hidden.decide() returns bool language sql as 'select ${body}'`);
    await decide("true");
    const keeper = await keep();
    const first = keeper.current();
    let differences = 0;
    keeper.onDifference(() => differences++);
    const leave = keeper.onDifference(() => differences++);
    leave();
    const differencesOfReload = async () => {
      differences = 0;
      await keeper.reload();
      return differences;
    };
    // Roles belong to the cluster, and tests of other files create some at any time.
    while ((await differencesOfReload()) > 0);
    await decide("false");
    expect([await differencesOfReload(), keeper.current()]).toEqual([1, first]);
  });

  test("is used once it is complete; until then the previous one stays", async () => {
    const gate = Promise.withResolvers<void>();
    let isGated = false;
    const keeper = await keep({
      asOwner: (work) =>
        lend(async (client) => {
          const result = await work(client);
          if (isGated) await gate.promise;
          return result;
        }),
    });
    const first = keeper.current();
    isGated = true;
    await fixture.owner.query("create table api.fresh (id int)");
    const reloaded = keeper.reload();
    await sleep(300);
    expect(keeper.current()).toBe(first);
    expect(keeper.state().status).toBe("reloading");
    gate.resolve();
    await reloaded;
    expect(has(keeper, "fresh")).toBe(true);
    expect(keeper.state().status).toBe("current");
  });

  test("is loaded a few times for a burst of requests, and none is missed", async () => {
    let loads = 0;
    const keeper = await keep({
      listener: listen(),
      asOwner: (work) => {
        loads++;
        return lend(work);
      },
    });
    await until(() => listensTo("pgrst"));
    loads = 0;
    for (let index = 0; index < 50; index++)
      await fixture.owner.query(`create table api.t${index} (id int); notify pgrst`);
    await until(() => has(keeper, "t49") && keeper.state().status === "current");
    expect([...keeper.current().schemas.get("api")!.tables.keys()].filter((name) => /^t\d/.test(name))).toHaveLength(
      50,
    );
    expect(loads).toBeLessThan(25);
  });
});

describe("when the catalogue cannot be loaded", () => {
  test("the catalogue stays, the state has the reason, and it recovers automatically", async () => {
    let isAway = false;
    const keeper = await keep({
      asOwner: (work) => (isAway ? Promise.reject(new Error("it is away")) : lend(work)),
    });
    const first = keeper.current();
    isAway = true;
    await expect(keeper.reload()).rejects.toThrow("it is away");
    expect(keeper.current()).toBe(first);
    expect(keeper.state()).toMatchObject({ status: "degraded", reason: "it is away", version: first.version });
    await fixture.owner.query("create table api.fresh (id int)");
    isAway = false;
    await until(() => has(keeper, "fresh"));
    expect(keeper.state()).toMatchObject({ status: "current", reason: null });
  });

  test("a backend that is killed during a load does no harm", async () => {
    let kill = false;
    const keeper = await keep({
      asOwner: (work) =>
        lend(async (client) => {
          if (kill) {
            kill = false;
            const { rows } = await client.query("select pg_backend_pid() as pid");
            setTimeout(() => fixture.owner.query("select pg_terminate_backend($1)", [rows[0].pid]), 5);
          }
          return work(client);
        }),
    });
    await fixture.owner.query("create table api.fresh (id int)");
    kill = true;
    await keeper.reload().catch(() => {});
    await expect.poll(() => has(keeper, "fresh")).toBe(true);
  });

  test("the first time, there is no keeper", async () => {
    await expect(keep({ asOwner: () => Promise.reject(new Error("it is away")) })).rejects.toThrow("it is away");
  });
});

test("exposed schemas that do not exist are logged, and exposed once they exist", async () => {
  const warnings: object[] = [];
  const keeper = await keep({
    schemas: ["api", "later"],
    pollIntervalMs: 20,
    log: { ...log, warn: (fields: object) => warnings.push(fields) },
  });
  expect(warnings).toEqual([{ schemas: ["later"] }]);
  await fixture.owner.query("create schema later; create table later.fresh (id int)");
  await until(() => keeper.current().findTable({ schema: "later", name: "fresh" }) !== undefined);
});

test("missing schemas that are requested later are logged, once", async () => {
  const warnings: object[] = [];
  const keeper = await keep({ log: { ...log, warn: (fields: object) => warnings.push(fields) } });
  await keeper.setOptions({ ...fixture.options, schemas: [...fixture.options.schemas, "nowhere"] });
  expect(warnings).toEqual([{ schemas: ["nowhere"] }]);
  await fixture.owner.query("create table api.told (id int)");
  await keeper.reload();
  expect(warnings).toEqual([{ schemas: ["nowhere"] }]);
});

test("other schemas are loaded on request, and nothing is loaded if they are the same", async () => {
  const keeper = await keep();
  const { version } = keeper.state();
  await keeper.setOptions({ ...fixture.options, timeZones: true });
  expect(keeper.state().version).toBe(version);
  await keeper.setOptions({ ...fixture.options, schemas: ["extra"] });
  expect(keeper.current().schemas.get("extra")).toMatchObject({ exposed: true });
  expect(keeper.current().schemas.has("api")).toBe(false);
  await fixture.owner.query("create table extra.fresh (id int)");
  await keeper.reload();
  expect(keeper.current().schemas.get("extra")!.tables.has("fresh")).toBe(true);
});

test("the last options that are set during a load are used", async () => {
  const keeper = await keep();
  const other = keeper.setOptions({ ...fixture.options, schemas: ["extra"] });
  await keeper.setOptions(fixture.options);
  await other;
  expect(keeper.current().schemas.has("api")).toBe(true);
});

test("options that failed to load are not retried after they are replaced", async () => {
  let isAway = false;
  const keeper = await keep({
    asOwner: (work) => (isAway ? Promise.reject(new Error("it is away")) : lend(work)),
  });
  isAway = true;
  await expect(keeper.setOptions({ ...fixture.options, schemas: ["extra"] })).rejects.toThrow("it is away");
  isAway = false;
  await keeper.setOptions(fixture.options);
  await keeper.reload();
  expect(keeper.current().schemas.has("api")).toBe(true);
});

test("a closed keeper sends no more queries", async () => {
  let request = 0;
  const keeper = await keep({
    pollIntervalMs: 10,
    asOwner: (work) => {
      request++;
      return lend(work);
    },
  });
  await until(() => request > 2);
  await keeper.close();
  request = 0;
  await sleep(50);
  expect(request).toBe(0);
  await expect(keeper.reload()).rejects.toThrow();
});
