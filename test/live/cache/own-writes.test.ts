import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service/service.ts";
import { connectWorkers } from "../../peer-workers.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openRealtimeFixture, type RealtimeFixture } from "../../realtime/service.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { followed, headersOf, readFrom, warm } from "./cached-service.ts";

const SCHEMA = `
  create table public.things (id int primary key, body text);
  insert into public.things values (1, 'begun');
  create function public.rename(wanted text) returns void language sql begin atomic update public.things set body = wanted where id = 1; end;
  create function public.touch() returns trigger language plpgsql security definer as
    'begin update public.copies set body = new.body where id = new.id; return new; end';
  create table public.copies (id int primary key, body text);
  insert into public.copies values (1, 'begun');
  create trigger copy after update on public.things for each row execute function public.touch();
  grant select on public.things, public.copies to anon, authenticated;
  grant all on public.things, public.copies to service_role;
  grant execute on function public.rename to service_role`;
const SETTINGS = { CACHE: "true", SERVER_TIMING: "true" };
const PATHS = ["things?id=eq.1&select=body", "copies?select=body", "things?select=id,body"];

let fixture: RealtimeFixture;
/** Two workers of one service, and another service. */
let workers: readonly Service[];
let other: Service;

beforeAll(async () => {
  fixture = await openRealtimeFixture(SCHEMA, SETTINGS);
  const connected = connectWorkers();
  workers = await Promise.all([1, 2].map(() => serve(fixture.database, SETTINGS, { peers: connected.join() })));
  other = fixture.service;
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await fixture.close();
});

const caller = headersOf("ann");
const writer = { ...headersOf("server", "service_role"), "content-type": "application/json" };

const writes = [
  (url: string, body: string) =>
    fetch(`${url}/rest/v1/things?id=eq.1`, { method: "PATCH", headers: writer, body: JSON.stringify({ body }) }),
  (url: string, wanted: string) =>
    fetch(`${url}/rest/v1/rpc/rename`, { method: "POST", headers: writer, body: JSON.stringify({ wanted }) }),
  (url: string, body: string) =>
    fetch(`${url}/rest/v1/things`, {
      method: "POST",
      headers: { ...writer, prefer: "resolution=merge-duplicates" },
      body: JSON.stringify({ id: 1, body }),
    }),
];

test("when a write is acknowledged, no worker answers with what was before", async () => {
  for (const { url } of workers) for (const path of PATHS) await warm(url, path, caller);
  let hits = 0;
  for (let number = 0; number < propertyRuns(100); number++) {
    const body = `number ${number}`;
    const response = await writes[number % 3]!(workers[number % 2]!.url, body);
    expect(response.status).toBeLessThan(300);
    for (const { url } of [...workers, ...workers, ...workers]) {
      for (const path of PATHS) {
        const read = await readFrom(url, path, caller);
        expect({ number, path, body: JSON.parse(read.body)[0].body }).toEqual({ number, path, body });
        if (read.cache === "hit") hits++;
      }
    }
  }
  expect(hits).toBeGreaterThan(0);
});

test("another service shows a write to those who send its X-Consistency", async () => {
  for (let number = 0; number < propertyRuns(50); number++) {
    await warm(other.url, PATHS[0]!, caller);
    const body = `elsewhere ${number}`;
    const written = await writes[0]!(workers[0]!.url, body);
    const position = written.headers.get("x-consistency")!;
    const read = await readFrom(other.url, PATHS[0]!, { ...caller, "x-consistency": position });
    expect(JSON.parse(read.body)).toEqual([{ body }]);
  }
});

test("a commit of another program is read when the stream has it", async () => {
  const { owner } = fixture;
  for (let number = 0; number < propertyRuns(50); number++) {
    for (const path of PATHS) await warm(other.url, path, caller);
    await owner.query(`update public.things set body = 'by psql ${number}'`);
    await followed(other, owner);
    for (const path of PATHS) expect((await readFrom(other.url, path, caller)).body).toContain(`by psql ${number}`);
  }
});

test("without the stream nothing is read from the cache, and afterwards it is filled again", async () => {
  const { owner } = fixture;
  for (let number = 0; number < 5; number++) {
    await warm(other.url, PATHS[0]!, caller);
    const { position } = other.changes.state();
    await owner.query(
      "select pg_terminate_backend(active_pid) from pg_replication_slots where database = current_database()",
    );
    await owner.query(`update public.things set body = 'meanwhile ${number}'`);
    await until(() => !other.changes.hasPassed(position!));
    expect((await readFrom(other.url, PATHS[0]!, caller)).body).toContain(`meanwhile ${number}`);
    const { body } = await warm(other.url, PATHS[0]!, caller);
    expect(body).toContain(`meanwhile ${number}`);
  }
});

test("If-None-Match is answered without Postgres, and a change has another tag", async () => {
  const tagged = { ...caller, prefer: "etag" };
  await warm(other.url, PATHS[0]!, tagged);
  const first = await fetch(`${other.url}/rest/v1/${PATHS[0]}`, { headers: tagged });
  const tag = first.headers.get("etag")!;
  const conditional = () => fetch(`${other.url}/rest/v1/${PATHS[0]}`, { headers: { ...caller, "if-none-match": tag } });
  // A commit of background work can keep what is cached from being read for a moment.
  await until(async () => {
    const same = await conditional();
    expect(same.status).toBe(304);
    return same.headers.get("server-timing")!.includes("cache;desc=hit");
  });
  await writes[0]!(other.url, crypto.randomUUID());
  const changed = await conditional();
  expect([changed.status, changed.headers.get("etag") === tag]).toEqual([200, false]);
});
