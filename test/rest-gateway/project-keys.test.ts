import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import { describe, expect, test } from "vitest";
import { makeProjectKeys } from "../../accounts/identity/project-keys.ts";
import { makeTokenKeys } from "../../accounts/identity/token-keys.ts";
import { useFixture } from "../fixture.ts";
import { openRealtimeFixture, subscribed } from "../realtime/service.ts";
import { SECRET } from "../secret.ts";

const KEYS = makeProjectKeys(makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null }));
const FORGED = KEYS.secret.replace(/.$/, (last) => (last === "A" ? "B" : "A"));

const fixture = useFixture(() =>
  openRealtimeFixture(`
    create table public.notes (id int primary key, text text);
    alter table public.notes enable row level security;
    grant select on public.notes to anon, service_role;
    insert into public.notes values (1, 'hidden from anon')`),
);

const clientWith = (key: string): SupabaseClient =>
  createClient(fixture.service.url, key, { auth: { persistSession: false, autoRefreshToken: false } });

describe.each([
  ["publishable", []],
  ["secret", [1]],
] as const)("the %s key", (name, ids) => {
  const key = KEYS[name];

  test("is a caller of /rest/v1, as a header or in the query, also together with the token that supabase-js sends", async () => {
    const requests: [query: string, headers: Record<string, string>][] = [
      ["", { apikey: key }],
      ["", { apikey: key, Authorization: `Bearer ${key}` }],
      [`&apikey=${key}`, {}],
    ];
    for (const [query, headers] of requests) {
      const response = await fetch(`${fixture.service.url}/rest/v1/notes?select=id${query}`, { headers });
      expect([response.status, await response.json()]).toEqual([200, ids.map((id) => ({ id }))]);
    }
  });

  test("is a caller of GraphQL, storage and the resource interface as a token", async () => {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const graphql = await fetch(`${fixture.service.url}/graphql`, {
      method: "POST",
      headers,
      body: JSON.stringify({ query: "{ notes { edges { node { id } } } }" }),
    });
    expect(await graphql.json()).toEqual({
      data: { notes: { edges: ids.map((id) => ({ node: { id: String(id) } })) } },
    });
    const resource = await fetch(`${fixture.service.url}/api/v1/notes?skip=0&limit=10`, { headers });
    expect(resource.status).toBe(200);
    const buckets = await fetch(`${fixture.service.url}/storage/v1/bucket`, { headers: { ...headers, apikey: key } });
    expect(buckets.status).toBe(200);
  });

  test("opens supabase-js: rows, buckets and channels", async () => {
    const client = clientWith(key);
    expect((await client.from("notes").select("id")).data).toEqual(ids.map((id) => ({ id })));
    expect((await client.storage.listBuckets()).error).toBeNull();
    await subscribed(client.channel("room"));
    await client.realtime.disconnect();
  });
});

test("a key that is not one of the two is refused everywhere", async () => {
  for (const headers of [{ apikey: FORGED }, { apikey: KEYS.publishable, Authorization: `Bearer ${FORGED}` }]) {
    const response = await fetch(`${fixture.service.url}/rest/v1/notes`, { headers });
    expect(response.status).toBe(401);
  }
  await expect(subscribed(clientWith(FORGED).channel("room"))).rejects.toThrow();
});
