import { afterAll, beforeAll, expect, test } from "vitest";
import { openRealtimeFixture, type RealtimeFixture } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { followed, headersOf, readFrom, warm } from "./cached-service.ts";

const ROW_BYTES = 50_000;
const ROWS = 60;
const SCHEMA = `
  create role readers;
  create table public.pages (id int primary key, body text);
  insert into public.pages select n, repeat('x', ${ROW_BYTES}) from generate_series(1, ${ROWS}) n;
  create table public.hidden (id int primary key);
  insert into public.hidden values (1);
  alter table public.hidden enable row level security;
  create policy of_readers on public.hidden for select to readers using (true);
  grant select on public.pages, public.hidden to anon, authenticated`;
const MEBIBYTE = 2 ** 20;

let fixture: RealtimeFixture;

beforeAll(async () => {
  fixture = await openRealtimeFixture(SCHEMA.replaceAll("readers", role), {
    ...{ CACHE: "true", CACHE_MB: "1", SERVER_TIMING: "true" },
  });
});
afterAll(async () => {
  await fixture.owner.query(`drop owned by ${role}; drop role ${role}`);
  await fixture.close();
});

const role = `readers_${crypto.randomUUID().slice(0, 8)}`;
const caller = headersOf("ann");

test("the cache takes no more memory than CACHE_MB, and keeps what is read most", async () => {
  const { url, cache } = fixture.service;
  const often = "pages?id=eq.1&select=body";
  let { dropped } = cache!.statistics();
  await warm(url, often, caller);
  for (let id = 2; id <= ROWS; id++) {
    for (let time = 0; time < 3; time++) await readFrom(url, `pages?id=eq.${id}&select=body`, caller);
    const { cache: outcome } = await readFrom(url, often, caller);
    const { dropped: now } = cache!.statistics();
    if (now === dropped) expect(outcome).toBe("hit");
    // The catalogue is read once more after a start, which drops all results.
    else await warm(url, often, caller);
    dropped = now;
  }
  const { bytes, entries } = cache!.statistics();
  expect(entries).toBeGreaterThan(5);
  expect(bytes).toBeLessThanOrEqual(MEBIBYTE);
});

test("a result that is larger than an eighth of the cache is not kept", async () => {
  const { url } = fixture.service;
  const path = "pages?select=body&limit=5";
  for (let time = 0; time < 6; time++) expect((await readFrom(url, path, caller)).cache).not.toBe("hit");
});

test("who gets or loses a role reads what it may read, when the catalogue has been compared", async () => {
  const { owner, service } = fixture;
  const read = () => warm(service.url, "hidden", caller);
  expect((await read()).body).toBe("[]");
  await owner.query(`grant ${role} to authenticated`);
  await until(async () => (await readFrom(service.url, "hidden", caller)).body === '[{"id":1}]');
  expect((await read()).body).toBe('[{"id":1}]');
  await owner.query(`revoke ${role} from authenticated`);
  await until(async () => (await readFrom(service.url, "hidden", caller)).body === "[]");
  await followed(service, owner);
  expect((await read()).body).toBe("[]");
});
