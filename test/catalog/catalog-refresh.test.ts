import { afterEach, beforeEach, expect, test } from "vitest";
import { type CatalogKeeper, keepCatalog, makeCatalogRefresh } from "../../catalog/catalog-keeper.ts";
import { type Fixture, makeFixture, tableOf } from "./fixture.ts";

let fixture: Fixture;
let keeper: CatalogKeeper;
let reads = 0;

beforeEach(async () => {
  fixture = await makeFixture();
  reads = 0;
  keeper = await keepCatalog({
    ...fixture.options,
    asOwner: (work) => {
      reads++;
      return work(fixture.owner);
    },
    listener: null,
    channel: "pgrst",
    log: { info: () => {}, warn: () => {}, error: () => {} },
    debounceMs: 0,
    pollIntervalMs: 1_000_000,
  });
});
afterEach(async () => {
  await keeper.close();
  await fixture.drop();
});

test("an outdated catalogue is reloaded once for all requests that found out", async () => {
  const catchUp = makeCatalogRefresh(keeper);
  const before = keeper.current();
  await fixture.owner.query("create table api.just_made (id int)");
  expect(await Promise.all([catchUp(before), catchUp(before), catchUp(before)])).toEqual([true, true, true]);
  expect(tableOf(keeper.current(), "just_made").columns.has("id")).toBe(true);
  expect(await catchUp(before)).toBe(true);
  expect(reads).toBe(2);
});

test("a current catalogue is reloaded once, and not for each error", async () => {
  const catchUp = makeCatalogRefresh(keeper);
  const catalog = keeper.current();
  expect([await catchUp(catalog), await catchUp(catalog)]).toEqual([false, false]);
  expect(reads).toBe(2);
});

test("a catalogue that was current is reloaded again where the database has reported a change since", async () => {
  const catchUp = makeCatalogRefresh(keeper);
  const catalog = keeper.current();
  expect(await catchUp(catalog)).toBe(false);
  await fixture.owner.query("create table api.made_later (id int)");
  // A notification reloads it like this.
  void keeper.reload();
  expect(await catchUp(catalog)).toBe(true);
  expect(tableOf(keeper.current(), "made_later").columns.has("id")).toBe(true);
  expect(reads).toBe(3);
});
