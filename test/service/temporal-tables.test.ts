import pg from "pg";
import { expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";
import { serve } from "../serve.ts";

const SQL = `
  create schema if not exists extensions;
  create extension btree_gist schema extensions;
  create table public.rooms (
    id int, during daterange, label text not null, loud text generated always as (upper(label)) virtual,
    primary key (id, during without overlaps)
  );
  create table public.notes (
    id int generated always as identity primary key, label text not null, loud text generated always as (upper(label)) virtual
  );
  alter table public.notes enable row level security;
  create policy by_virtual_column on public.notes using (loud <> 'HIDDEN') with check (loud <> 'SECRET');
  grant all on public.rooms, public.notes to anon;
  insert into public.rooms values (1, '[2026-01-01,2026-02-01)', 'a'), (1, '[2026-02-01,2026-03-01)', 'b');
  insert into public.notes (label) values ('x'), ('hidden')`;

test("virtual columns and temporal keys of Postgres 18 are served by every interface", async ({ skip }) => {
  await using opened = new AsyncDisposableStack();
  const database = await cloneDatabase("platform");
  opened.defer(() => database.drop());
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  opened.defer(() => owner.end());
  const { rows } = await owner.query("select current_setting('server_version_num')::int as version");
  if (rows[0].version < 180_000) skip();
  await owner.query(SQL);
  const service = await serve(database, { BASE_SCHEMA: "platform", REST_REQUIRE_APIKEY: "false" });
  opened.defer(() => service.stop());
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { "content-type": "application/json", prefer: "return=representation" };
    const response = await fetch(service.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  expect(await ask("GET", "/rest/v1/notes?loud=eq.X&order=loud")).toEqual({
    status: 200,
    body: [{ id: 1, label: "x", loud: "X" }],
  });
  expect(await ask("GET", "/rest/v1/notes?loud=eq.HIDDEN")).toEqual({ status: 200, body: [] });
  expect(await ask("PATCH", "/rest/v1/notes?loud=eq.X", { label: "y" })).toEqual({
    status: 200,
    body: [{ id: 1, label: "y", loud: "Y" }],
  });
  expect((await ask("POST", "/rest/v1/notes", { label: "z", loud: "Q" })).body.code).toBe("428C9");
  expect((await ask("POST", "/rest/v1/notes", { label: "secret" })).body.code).toBe("42501");
  expect(await ask("PATCH", "/api/v1/notes/1", { label: "w" })).toMatchObject({ status: 200, body: { loud: "W" } });
  expect((await ask("PATCH", "/api/v1/notes/1", { label: "secret" })).status).toBeGreaterThanOrEqual(401);
  expect((await ask("GET", "/api/v1/notes?loud=W")).body.data).toEqual([{ id: 1, label: "w", loud: "W" }]);
  const updated = await ask("POST", "/graphql", {
    query: 'mutation { updateNote(id: 1, input: { label: "v" }) { id loud } }',
  });
  expect(updated.body.data).toEqual({ updateNote: { id: "1", loud: "V" } });
  const refused = await ask("POST", "/graphql", {
    query: 'mutation { updateNote(id: 1, input: { label: "secret" }) { id loud } }',
  });
  expect(refused.body.errors).toHaveLength(1);
  expect((await owner.query("select label from public.notes order by id")).rows).toEqual([
    { label: "v" },
    { label: "hidden" },
  ]);

  const overlapping = { id: 1, during: "[2026-01-15,2026-02-15)", label: "c" };
  expect(await ask("POST", "/rest/v1/rooms", overlapping)).toMatchObject({ status: 400, body: { code: "23P01" } });
  expect((await ask("POST", "/api/v1/rooms", overlapping)).status).toBe(409);
  const after = { ...overlapping, during: "[2026-03-01,2026-04-01)" };
  expect(await ask("POST", "/api/v1/rooms", after)).toMatchObject({ status: 201, body: { ...after, loud: "C" } });
  const read = await ask("POST", "/graphql", { query: "{ rooms { edges { node { id label loud } } } }" });
  expect(read.body.data).toEqual({
    rooms: { edges: ["a", "b", "c"].map((label) => ({ node: { id: "1", label, loud: label.toUpperCase() } })) },
  });
});
