import { expect, test } from "vitest";
import { makeCatalogRefresh } from "../../../catalog/catalog-keeper.ts";
import { makeBindingReader } from "../../../realtime/changes/binding.ts";
import { useFixture } from "../../fixture.ts";
import { RawClient } from "../raw-client.ts";
import { openRealtimeFixture } from "../service.ts";
import { StreamByHand, servicesWith } from "./stream-by-hand.ts";

const fixture = useFixture(openRealtimeFixture);

test.each([
  { what: "a table", grant: "grant select on public.news to anon", select: undefined },
  { what: "a column", grant: "grant select (id, title) on public.news to anon", select: ["title"] },
])(
  "$what that was granted a moment ago can be subscribed to immediately, and not before",
  async ({ grant, select }) => {
    const client = await new RawClient(fixture.service.url).opened();
    const join = async (topic: string): Promise<string> => {
      await client.join(topic, { postgres_changes: [{ event: "*", schema: "public", table: "news", select }] });
      return (await client.until((message) => message.topic === topic && message.event === "system")).payload.status;
    };
    await fixture.owner.query("revoke select on public.news from anon");
    await fixture.owner.query("notify pgrst, 'reload schema'");
    for (let status = "ok", nth = 0; status === "ok"; nth++) status = await join(`realtime:before-${nth}`);
    await fixture.owner.query(grant);
    expect(await join("realtime:after")).toBe("ok");
    await client.close();
  },
);

test.each([
  ["at=lte.now", "error"],
  ["at=gt.Yesterday 10:00", "error"],
  ["day=eq.today", "error"],
  ["day=in.(2026-01-01,tomorrow)", "error"],
  ["at=lte.2026-01-01", "ok"],
  ["title=eq.now", "ok"],
])("a subscription with the filter %s, which may depend on the time, is answered with %s", async (filter, status) => {
  await fixture.owner.query(`
    create table if not exists public.events_of_days (id int primary key, title text, at timestamptz, day date);
    grant select on public.events_of_days to anon`);
  const client = await new RawClient(fixture.service.url).opened();
  const change = { event: "*", schema: "public", table: "events_of_days", filter };
  await client.join(`realtime:${filter}`, { postgres_changes: [change] });
  expect((await client.until(({ event }) => event === "system")).payload.status).toBe(status);
  await client.close();
});

test("many bindings of a table without privileges query them once", async () => {
  const {
    catalog,
    publication: published,
    findMissingColumns: blindSpots,
  } = await servicesWith(new StreamByHand(), fixture);
  let request = 0;
  const ask = async () => {
    request++;
    return [["f"]];
  };
  const terms = {
    ...{ catalog, refreshCatalog: makeCatalogRefresh(catalog), role: "anon", isAnonymous: true },
    ...{ publication: published, findMissingColumns: blindSpots },
  };
  const read = makeBindingReader({ ...terms, query: ask, readValues: ask });
  const bindings = Array.from({ length: 100 }, (_, n) => ({ event: "*", table: "notes", filter: `price=eq.${n}` }));
  const resolved = await Promise.all(bindings.map((binding, at) => read(binding, at + 1)));
  expect(resolved).toEqual(bindings.map(() => null));
  expect(request).toBe(1);
  await catalog.close();
});

test("a binding that names a system column is refused without loading the catalogue", async () => {
  const { catalog, publication, findMissingColumns } = await servicesWith(new StreamByHand(), fixture);
  const query = async ({ text, values = [] }: { readonly text: string; readonly values?: readonly unknown[] }) => {
    await fixture.owner.query("begin");
    await fixture.owner.query("set local role anon");
    const { rows } = await fixture.owner.query<boolean[]>({ text, values: [...values], rowMode: "array" });
    await fixture.owner.query("commit");
    return rows.map((row) => row.map((value) => (value ? "t" : "f")));
  };
  const read = makeBindingReader({
    ...{ catalog, refreshCatalog: makeCatalogRefresh(catalog), role: "anon", isAnonymous: true },
    ...{ publication, findMissingColumns, query, readValues: query },
  });
  const { confirmedAt } = catalog.state();
  expect(await read({ table: "news", select: ["title"] }, 1)).toMatchObject({ table: "news" });
  expect(await read({ table: "news", filter: "ctid=eq.(0,1)" }, 2)).toBe(null);
  expect(await read({ table: "news", select: ["xmin"] }, 3)).toBe(null);
  expect(catalog.state().confirmedAt).toBe(confirmedAt);
  await catalog.close();
});
