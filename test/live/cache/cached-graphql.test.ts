import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service/service.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openRealtimeFixture, type RealtimeFixture } from "../../realtime/service.ts";
import { serve } from "../../serve.ts";
import { makeRandom } from "../queries/random.ts";
import { followed, headersOf } from "./cached-service.ts";

const SCHEMA = `
  create table public.authors (id int primary key, name text not null);
  create table public.books (id int primary key, author_id int not null references public.authors on delete cascade, owner text, title text);
  alter table public.books enable row level security;
  create policy own on public.books for select using (owner = (select auth.jwt() ->> 'sub'));
  grant select on public.authors, public.books to anon, authenticated;
  insert into public.authors select n, 'author ' || n from generate_series(1, 3) n`;
const QUERIES = [
  { query: "{ books { edges { node { id title author { name } } } totalCount } }" },
  { query: "query ($id: ID!) { book(id: $id) { title } }", variables: { id: "1" } },
  { query: "{ authors(first: 2) { edges { node { name books { title } } } } }" },
  { query: "{ books(where: {id: {gt: 1}}, first: 2) { edges { node { id title author { id name } } } } }" },
  {
    query:
      "query ($author: ID) { books(where: {authorId: {eq: $author}}, last: 2) { edges { node { id authorId } } } }",
    variables: { author: "2" },
  },
];

let fixture: RealtimeFixture;
let plain: Service;

beforeAll(async () => {
  fixture = await openRealtimeFixture(SCHEMA, { CACHE: "true", SERVER_TIMING: "true" });
  plain = await serve(fixture.database);
});
afterAll(async () => {
  await plain.stop();
  await fixture.close();
});

async function ask(url: string, request: object, person: string) {
  const headers = { ...headersOf(person), "content-type": "application/json" };
  const response = await fetch(`${url}/graphql`, { method: "POST", headers, body: JSON.stringify(request) });
  const isHit = response.headers.get("server-timing")?.includes("cache;desc=hit") === true;
  return { body: await response.text(), isHit };
}

test("after random writes, cached queries have what each caller reads", async () => {
  const random = makeRandom(3);
  const { owner, service } = fixture;
  let hits = 0;
  const steps = propertyRuns(60);
  for (let step = 0; step < steps; step++) {
    const [book, author, person] = [1 + random(4), 1 + random(3), ["ann", "bob"][random(2)]];
    const statements = [
      `insert into public.books values (${book}, ${author}, '${person}', 't${random(99)}')
        on conflict (id) do update set author_id = excluded.author_id, owner = excluded.owner, title = excluded.title`,
      `delete from public.books where id = ${book}`,
      `update public.authors set name = 'a${random(99)}' where id = ${author}`,
    ];
    await owner.query(statements[random(3)]!);
    if (service.changes.state().status === "streaming") await followed(service, owner);
    for (const request of [...QUERIES, ...QUERIES, ...QUERIES, ...QUERIES]) {
      for (const reader of ["ann", "bob"]) {
        const [cached, expected] = [await ask(service.url, request, reader), await ask(plain.url, request, reader)];
        expect(cached.body).not.toContain("VALIDATION");
        expect({ step, reader, body: cached.body }).toEqual({ step, reader, body: expected.body });
        if (cached.isHit) hits++;
      }
    }
  }
  expect(hits).toBeGreaterThan(steps);
});
