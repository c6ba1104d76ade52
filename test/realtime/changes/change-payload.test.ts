import { afterEach, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { RawClient } from "../raw-client.ts";
import { openRealtimeFixture } from "../service.ts";

const SHEETS = { event: "*", schema: "public", table: "sheets" };

let client: RawClient;
const fixture = useFixture(openRealtimeFixture);
afterEach(async () => {
  await client.close();
  await fixture.owner.query("drop table public.sheets");
});

async function join(more: object = {}): Promise<void> {
  await fixture.owner.query(`create table public.sheets (id int primary key, title text, body text);
    grant select on public.sheets to anon`);
  client = await new RawClient(fixture.service.url).opened();
  await client.join("realtime:x", { postgres_changes: [{ ...SHEETS, ...more }] });
}

const changeOf = async (id: number) =>
  (await client.until(({ payload }) => payload.data?.record?.id === id)).payload.data;

test("a change from before a column was renamed reports the column as missing", async () => {
  await join();
  await fixture.owner.query(
    "begin; insert into sheets values (1, 'One', 'a'); alter table sheets rename title to name; commit",
  );
  const { record, errors } = await changeOf(1);
  expect(record).toEqual({ id: 1, body: "a" });
  expect(errors).toEqual([expect.stringMatching(/^Error 409: Conflict, .* altered .* does not have name$/)]);
  await fixture.owner.query("insert into sheets values (2, 'Two', 'b')");
  expect(await changeOf(2)).toMatchObject({ record: { id: 2, name: "Two", body: "b" }, errors: null });
});

test.each([
  ["added", "add extra text", { id: 1, title: "One", body: "a" }],
  ["dropped", "drop title", { id: 1, body: "a" }],
])("a change from before a column was %s has all other columns", async (_how, alter, record) => {
  await join();
  await fixture.owner.query(`begin; insert into sheets values (1, 'One', 'a'); alter table sheets ${alter}; commit`);
  expect(await changeOf(1)).toMatchObject({ record, errors: null });
});

test("a subscriber that selected a column by name is notified when it is renamed, and cannot select it any more", async () => {
  await join({ select: ["title"] });
  await fixture.owner.query("alter table sheets rename title to name; insert into sheets values (1, 'One', 'a')");
  const { payload } = await client.until(({ payload }) => payload.status === "error");
  expect(payload.message).toMatch(/^Changes may have been missed: a column of sheets was revoked, altered or dropped/);
  await client.until(({ event }) => event === "phx_error");
});
