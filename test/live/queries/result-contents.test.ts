import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeAll, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { countRuns } from "./count-runs.ts";
import { EventClient } from "./event-client.ts";
import { makeRandom } from "./random.ts";

const SCHEMA = `
  create table public.shelves (id int primary key, name text, is_open bool not null default true);
  create table public.books (
    id int primary key, shelf int references public.shelves on delete set null, owner text, title text, code uuid default gen_random_uuid());
  create table public.notes (id bigint primary key, book int references public.books on delete cascade, body text);
  create table public.tags (id int primary key, name text);
  create table public.book_tags (book int references public.books on delete cascade, tag int references public.tags on delete cascade, primary key (book, tag));
  create table public.owned (id int primary key, owner text, body text);
  create table public.pairs (name text, place int, body text, primary key (name, place));
  create table public.loans (id int primary key, place int, body text);
  create index on public.loans (place);
  create table public.readers (person text primary key, may_read bool not null);
  alter table public.books enable row level security;
  alter table public.owned enable row level security;
  alter table public.readers enable row level security;
  create policy own on public.readers for select using (person = (select auth.jwt() ->> 'sub'));
  create policy own on public.owned for select using (owner = (select auth.jwt() ->> 'sub'));
  create policy readable on public.books for select using (owner is null or owner = (select auth.jwt() ->> 'sub')
    or exists (select from public.readers r where r.person = (select auth.jwt() ->> 'sub') and r.may_read));
  grant select on all tables in schema public to authenticated;
  insert into public.shelves select n, 'shelf ' || n from generate_series(1, 9) n;
  insert into public.books (id, shelf, title) select 10 * n, 1 + n % 9, 'book ' || n from generate_series(1, 20) n;
  insert into public.notes select n, 10 * (1 + n % 20), 'note ' || n from generate_series(1, 60) n;
  insert into public.tags select n, 'tag ' || n from generate_series(1, 5) n;
  insert into public.book_tags select 10 * b, t from generate_series(1, 20) b, generate_series(1, 5) t where (b + t) % 3 = 0;
  insert into public.owned select n, case when n % 2 = 0 then 'ann' else 'bob' end, 'owned ' || n from generate_series(1, 8) n;
  insert into public.loans select n, 1 + n % 4, 'loan ' || n from generate_series(1, 12) n;
  insert into public.pairs select 'p' || n, n, 'x' from generate_series(1, 8) n`;
/** Old rows have the key alone, if at all. */
const IDENTITIES = ["books", "loans", "notes", "shelves", "owned", "book_tags", "readers"]
  .map((table) => `alter table public.${table} replica identity default`)
  .join("; ");

const clients: EventClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(`${SCHEMA}; ${IDENTITIES}`, { ADMIN_PORT: "0" }));
// Until the schema is built, GraphQL is 503.
beforeAll(() => until(async () => (await fetch(graphqlUrl("{ __typename }"), { headers: headersOf("ann") })).ok));
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function open(path: Query, person = "ann"): Promise<EventClient> {
  const client = await EventClient.open(liveUrlOf(path), headersOf(person));
  clients.push(client);
  return client;
}

const headersOf = (person: string) => ({
  apikey: anonKey,
  authorization: `Bearer ${token({ sub: person, role: "authenticated" })}`,
});
/** A path of `/rest/v1`, or the selection of a GraphQL query. */
type Query = string;
const isGraphql = (query: Query) => query.startsWith("{");
const graphqlUrl = (document: string) => `${fixture.service.url}/graphql?query=${encodeURIComponent(document)}`;
const urlOf = (path: string) => `${fixture.service.url}/rest/v1/${path}`;
const liveUrlOf = (query: Query) => (isGraphql(query) ? graphqlUrl(`subscription { live ${query} }`) : urlOf(query));

async function readNow(query: Query, person = "ann"): Promise<string> {
  const response = await fetch(isGraphql(query) ? graphqlUrl(query) : urlOf(query), { headers: headersOf(person) });
  const body = (await response.json()) as { readonly data?: unknown };
  return JSON.stringify(isGraphql(query) ? body.data : body);
}

/** Resolves when the client has the rows that its caller reads. */
async function settle(path: Query, client: EventClient): Promise<void> {
  const expected = await readNow(path);
  await client.untilResultIs((result) => JSON.stringify(result) === expected);
}

const REPEATED = 5;
/** Tests of other databases change roles, after which all queries run again. */
const ATTEMPTS = 5;
/** Changes that follow at once are in one run. */
const PAUSE_MS = 60;

type Case = readonly [what: string, path: Query, without: string, matters: string];
const PAGE = "books?select=id,title&order=id.asc&limit=5";
const LONG_NAME = "n".repeat(64);
const LAST_PAGE = "books?select=id,title&order=id.desc&limit=5";

test.each<Case>([
  [
    "a range of the key, of rows outside",
    "notes?select=id,body&id=gte.10&id=lt.20&order=id",
    "update public.notes set body = body || '.' where id in (3, 30, 9)",
    "update public.notes set body = 'in' where id = 15",
  ],
  [
    "a range of UUIDs, of a row outside",
    "books?select=id,title&code=lt.00000000-0000-0000-0000-000000000001&order=title",
    "insert into public.books (id, title) values (7, 'x'); delete from public.books where id = 7",
    "insert into public.books (id, title, code) values (8, 'y', '00000000-0000-0000-0000-000000000000')",
  ],
  [
    "a full page, of a row behind it",
    PAGE,
    "update public.books set title = title || '.' where id = 90; insert into public.books (id) values (95); delete from public.books where id = 95",
    "update public.books set title = 'on the page' where id = 20",
  ],
  [
    "a full page, of a row that comes to it",
    PAGE,
    "update public.books set title = title || '.' where id = 100",
    "insert into public.books (id, title) values (5, 'first')",
  ],
  [
    "a full page in descending order, of rows behind it",
    LAST_PAGE,
    "update public.books set title = title || '.' where id = 30; insert into public.books (id) values (31); delete from public.books where id = 31",
    "update public.books set title = 'on the last page' where id = 200",
  ],
  [
    "rows of another owner",
    "owned?select=id,body&order=id",
    "update public.owned set body = body || '.' where owner = 'bob'",
    "update public.owned set owner = 'ann' where id = 1",
  ],
  [
    "rows of another owner that are deleted",
    "owned?select=id,body&order=id",
    "insert into public.owned values (100, 'bob'); update public.owned set body = 'b' where id = 100; delete from public.owned where id = 100",
    "delete from public.owned where id = 2",
  ],
  [
    "rows by a key of two columns, also of a text",
    "pairs?select=name,place,body&place=eq.1&order=name",
    "insert into public.pairs values ('p9', 9); update public.pairs set body = 'y' where name = 'p9'; delete from public.pairs where name = 'p9'",
    "update public.pairs set body = 'z' where name = 'p1'",
  ],
  [
    "rows of a to-one relation that no row refers to",
    "books?select=id,shelf,shelves(name)&id=in.(20,30)&order=id",
    "update public.shelves set name = name || '.' where id in (7, 8)",
    "update public.shelves set name = 'renamed' where id = 3",
  ],
  [
    "rows of a to-one relation whose keys are shown in the relation alone",
    "books?select=title,shelves(id,name)&id=in.(40,50)&order=id",
    "update public.shelves set name = name || '.' where id in (7, 8)",
    "update public.shelves set name = 'renamed again' where id = 5",
  ],
  [
    "rows of a to-many relation with other parents",
    "books?select=id,notes(id,body)&id=eq.60&notes.order=id",
    "update public.notes set body = body || '.' where book = 70; insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "update public.notes set book = 60 where id = 6",
  ],
  [
    "rows of a to-many relation with other parents, where the parent does not show its key",
    "books?select=title,notes(id,body)&id=eq.110&notes.order=id",
    "update public.notes set body = body || '.' where book = 70",
    "delete from public.notes where book = 110",
  ],
  [
    "pairs of a many-to-many relation with other parents",
    "books?select=id,tags(id,name)&id=eq.130&tags.order=id",
    "delete from public.book_tags where book = 140; insert into public.book_tags values (140, 1), (140, 2)",
    "insert into public.book_tags values (130, 1), (130, 3), (130, 4) on conflict do nothing",
  ],
  [
    "rows with a relation by a name that Postgres shortens, of other tables",
    `books?select=id,${LONG_NAME}:notes(id,body)&id=in.(20,150)&order=id&${LONG_NAME}.order=id`,
    "update public.tags set name = name || '.'",
    "delete from public.notes where book = 150",
  ],
  [
    "GraphQL: a row by its key, of other rows",
    "{ note(id: 15) { id body } }",
    "update public.notes set body = body || '.' where id in (3, 30, 9); insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "update public.notes set body = 'in' where id = 15",
  ],
  [
    "GraphQL: a row by its key, which there is not",
    "{ note(id: 950) { body } }",
    "update public.notes set body = body || '.' where id in (3, 30, 9)",
    "insert into public.notes values (950, 70, 'new') on conflict (id) do update set body = excluded.body || '.'",
  ],
  [
    "GraphQL: a range of the key, of rows outside",
    "{ notes(where: {and: [{id: {gte: 10}}, {id: {lt: 20}}]}, first: 20) { edges { node { body } } } }",
    "update public.notes set body = body || '.' where id in (3, 30, 9)",
    "update public.notes set body = 'in the range' where id = 15",
  ],
  [
    "GraphQL: a full page, of rows behind it",
    "{ books(first: 5, orderBy: [{id: ASC}]) { edges { cursor node { id title } } } }",
    "update public.books set title = title || '.' where id = 90; insert into public.books (id) values (95); delete from public.books where id = 95",
    "update public.books set title = 'on the page' where id = 20",
  ],
  [
    "GraphQL: a full page, of a row that comes to it",
    "{ books(first: 5) { edges { node { key: id title } } } }",
    "update public.books set title = title || '.' where id = 100",
    "insert into public.books (id, title) values (4, 'before all')",
  ],
  [
    "GraphQL: the last page, of rows before it",
    "{ books(last: 5, orderBy: [{id: ASC}]) { edges { node { id title } } } }",
    "update public.books set title = title || '.' where id = 30; insert into public.books (id) values (31); delete from public.books where id = 31",
    "update public.books set title = 'on the last page' where id = 200",
  ],
  [
    "GraphQL: a page of other parents, by the key of the parent",
    "{ notes(where: {book: {id: {eq: 60}}}, first: 50) { edges { node { id body } } } }",
    "update public.notes set body = body || '.' where book = 70; insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "update public.notes set book = 60 where id = 6",
  ],
  [
    "GraphQL: rows of a to-one relation that no row refers to",
    "{ books(where: {id: {in: [20, 30]}}) { edges { node { id shelfId shelf { name } } } } }",
    "update public.shelves set name = name || '.' where id in (7, 8)",
    "update public.shelves set name = 'renamed' where id = 3",
  ],
  [
    "GraphQL: rows of a to-many relation with other parents",
    "{ book(id: 60) { notes(limit: 50) { id body } } }",
    "update public.notes set body = body || '.' where book = 70; insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "update public.notes set book = 60 where id = 6",
  ],
  [
    "GraphQL: a page by an argument, of rows with other values",
    "{ loans(place: 1, first: 50) { edges { node { id body } } } }",
    "update public.loans set body = body || '.' where place = 2; insert into public.loans values (900, 2); delete from public.loans where id = 900",
    "update public.loans set place = 1 where id = 2",
  ],
  [
    "GraphQL: a page by a field of the filter, of rows with other values",
    "{ loans(filter: {place: 3}, first: 50) { edges { node { id body } } } }",
    "update public.loans set body = body || '.' where place = 2; insert into public.loans values (900, 2); delete from public.loans where id = 900",
    "update public.loans set place = 3 where id = 4",
  ],
  [
    "GraphQL: all rows of a condition and their number, of other rows",
    "{ notes(where: {id: {gte: 10, lt: 20}}, first: 20) { totalCount edges { node { id body } } } }",
    "update public.notes set body = body || '.' where id in (3, 30, 9); insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "insert into public.notes values (10, 20, 'counted') on conflict (id) do update set body = 'counted again'",
  ],
  [
    "GraphQL: some rows of a condition and the number of all, of other rows",
    "{ notes(where: {id: {gte: 20, lt: 30}}, first: 3) { all: totalCount edges { node { id body } } } }",
    "update public.notes set body = body || '.' where id in (3, 31, 9); insert into public.notes values (900, 70); delete from public.notes where id = 900",
    "delete from public.notes where id = 29",
  ],
  [
    "GraphQL: all rows, and that there are no others, of rows of another owner",
    "{ owneds(first: 50) { edges { node { id body } } pageInfo { hasNextPage hasPreviousPage endCursor } } }",
    "update public.owned set body = body || '.' where owner = 'bob'; insert into public.owned values (99, 'bob'); delete from public.owned where id = 99",
    "delete from public.owned where id = 4",
  ],
  [
    "GraphQL: a full page with its cursors, of rows behind it",
    "{ books(first: 5, orderBy: [{id: ASC}]) { edges { node { id title } } pageInfo { startCursor endCursor hasPreviousPage } } }",
    "update public.books set title = title || '.' where id = 90; insert into public.books (id) values (95); delete from public.books where id = 95",
    "update public.books set title = 'on the page with cursors' where id = 20",
  ],
  [
    "GraphQL: a full page, and that there are others, of rows that come behind it",
    "{ notes(where: {id: {gte: 30}}, first: 5) { edges { node { id body } } pageInfo { hasNextPage } } }",
    "insert into public.notes select max(id) + 1, 70, 'behind' from public.notes",
    "delete from public.notes where id > 34",
  ],
  [
    "GraphQL: the last page, and that there are others, of rows that come before it",
    "{ notes(where: {id: {lte: 30}}, last: 5) { edges { node { id } } pageInfo { hasPreviousPage } } }",
    "insert into public.notes select min(id) - 1, 70, 'before' from public.notes",
    "delete from public.notes where id < 26",
  ],
])("%s run no query", async (_what, path, without, matters) => {
  const { owner } = fixture;
  const client = await open(path);
  await settle(path, client);
  let runs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; runs > 1 && attempt < ATTEMPTS; attempt++) {
    const before = await countRuns(fixture.service);
    for (let change = 0; change < REPEATED; change++) {
      await owner.query(without);
      await sleep(PAUSE_MS);
    }
    runs = (await countRuns(fixture.service)) - before;
  }
  // A transaction of another database that ran when the query was opened may have it run once more.
  expect(runs).toBeLessThanOrEqual(1);
  await owner.query(matters);
  await settle(path, client);
  await owner.query(without);
  await settle(path, client);
});

const PATHS = [
  PAGE,
  LAST_PAGE,
  "books?select=id,shelf&order=shelf.asc.nullslast,id&limit=4",
  "books?select=id,shelf&order=shelf.desc,id&limit=4",
  "books?select=*&id=gte.50&id=lte.120&order=id",
  "books?select=id,title,shelf,shelves(id,name)&order=id.desc&limit=6",
  "books?select=title,shelves(id,name)&id=in.(20,30,40)&order=id",
  "books?select=id,notes(id,body)&id=eq.60&notes.order=id",
  "books?select=id,title,notes(id,body)&order=id&limit=3&notes.order=id.desc&notes.limit=2",
  "books?select=title,notes(body)&id=in.(70,80)&notes.order=id&order=id",
  "books?select=id,tags(id,name)&id=in.(50,60,70)&tags.order=id&order=id",
  "notes?select=id,body,books(id,title,shelves(id,name))&order=id.desc&limit=7",
  "notes?select=id,body,books!inner(id,title)&books.id=lt.60&order=id",
  "notes?select=id,book,books(title)&id=gt.40&order=id",
  "shelves?select=id,name,books(id,title,notes(id,body))&id=in.(1,2)&order=id&books.order=id&books.notes.order=id",
  "shelves?select=id,books(count)&order=id&limit=4",
  "owned?select=id,owner,body&order=id",
  "owned?select=id,body&id=gt.3&order=id&limit=2&offset=1",
  "pairs?select=*&place=eq.3&order=name",
  "{ books(first: 5) { edges { node { id title } } } }",
  "{ books(last: 4, orderBy: [{id: ASC}]) { edges { node { id title } } } }",
  "{ books(first: 4, orderBy: [{id: DESC}]) { edges { node { id owner } } pageInfo { hasNextPage endCursor } } }",
  "{ notes(first: 5) { edges { node { id body } } pageInfo { hasNextPage } } }",
  "{ notes(last: 5, where: {id: {lt: 40}}) { edges { node { id body } } pageInfo { hasPreviousPage } } }",
  "{ books(first: 4, orderBy: [{shelf_: ASC}, {id: ASC}]) { pageInfo { hasNextPage } edges { node { id shelfId } } } }",
  "{ books(first: 4, orderBy: [{shelf_: ASC}, {id: ASC}]) { edges { node { id shelfId } } } }",
  "{ books(first: 4, orderBy: [{shelf_: DESC}, {id: ASC}]) { edges { node { id shelfId } } } }",
  "{ books(last: 4, orderBy: [{shelf_: ASC}, {id: ASC}]) { edges { node { id shelfId } } } }",
  "{ books(last: 4, orderBy: [{shelf_: DESC}, {id: ASC}]) { edges { node { id shelfId } } } }",
  "{ books(first: 3, orderBy: [{shelf: {name: DESC}}]) { edges { node { id } } } }",
  "{ books(where: {id: {gte: 50, lte: 120}}, first: 20) { totalCount edges { node { id title } } } }",
  "{ books(where: {id: {gt: 100}}, first: 3) { totalCount } }",
  "{ books(where: {id: {lt: 90}}, first: 0) { totalCount edges { node { id } } } }",
  "{ books(where: {or: [{id: {eq: 20}}, {shelf_: {eq: 3}}]}) { edges { node { id title } } } }",
  "{ books(where: {not: {id: {lt: 100}}}, first: 6) { edges { node { id title } } } }",
  "{ books(where: {shelf: {id: {in: [2, 3]}}}, first: 20) { edges { node { id shelf { name } } } } }",
  "{ books(where: {notes: {some: {id: {lt: 30}}}}, first: 20) { edges { node { id } } } }",
  "{ books(first: 6, orderBy: [{id: DESC}]) { edges { node { a: id shelfId shelf { id name } } } } }",
  "{ books(where: {id: {in: [20, 30, 40]}}) { edges { node { title shelf { id name } } } } }",
  "{ one: book(id: 60) { id notes(limit: 3, orderBy: [{id: DESC}]) { id body } } }",
  "{ book(id: 70) { title notes(limit: 2, offset: 1) { body } shelf { name books(limit: 2) { id } } } }",
  '{ book(id: 20) { title } shelf(id: 3) { name } pair(name: "p3", place: 3) { body } }',
  "{ notes(last: 7) { edges { node { id body book { id title shelf { id name } } } } } }",
  "{ shelves(where: {id: {in: [1, 2]}}) { edges { node { id name books(limit: 50) { id title notes(limit: 50) { id body } } } } } }",
  "{ books(where: {id: {in: [50, 60, 70]}}) { edges { node { bookTags { tag { id name } } } } } }",
  "{ owneds(first: 50) { edges { node { id owner body } } } }",
  "{ owneds(where: {id: {gt: 3}}, first: 2) { edges { node { id body } } pageInfo { hasNextPage } } }",
  "{ pairs(where: {place: {eq: 3}}) { edges { node { name place body } } } }",
  "{ loans(place: 2, first: 3) { edges { node { id body } } pageInfo { hasNextPage endCursor } } }",
  "{ loans(filter: {place: 3}, first: 9) { totalCount edges { node { id place } } pageInfo { hasNextPage } } }",
  "{ loans(place: 1, first: 2, orderBy: [{id: DESC}]) { one: totalCount two: totalCount edges { node { id } } } }",
  "{ loans(place: 1) { totalCount } all: loans(first: 4) { edges { node { id body } } } }",
  "{ loans(place: null, first: 3) { totalCount edges { node { id body } } pageInfo { startCursor } } }",
  "{ loans(last: 4, orderBy: [{id: ASC}]) { totalCount edges { node { id body } } pageInfo { hasPreviousPage hasNextPage } } }",
  "{ books(first: 30) { totalCount edges { node { id title } } pageInfo { hasNextPage } } }",
  "{ shelves(where: {id: {in: [1, 2, 3]}}, first: 3) { totalCount edges { node { id books(limit: 5) { id title } } } } }",
];

function randomStatement(random: (below: number) => number): string {
  const [book, other] = [10 * (1 + random(22)), 10 * (1 + random(22))];
  const [shelf, note, tag, place] = [1 + random(10), 1 + random(70), 1 + random(5), 1 + random(5)];
  const owner = ["null", "'ann'", "'bob'", "'cem'"][random(4)]!;
  const shelfOf = random(4) === 0 ? "null" : `(select id from public.shelves where id = ${shelf})`;
  return [
    `insert into public.books (id, shelf, owner, title) values (${book}, ${shelfOf}, ${owner}, 'new')
      on conflict (id) do update set shelf = excluded.shelf, owner = excluded.owner`,
    `update public.books set title = 't${random(99)}' where id = ${book}`,
    `update public.books set owner = ${owner} where id = ${book}`,
    `update public.books set shelf = ${shelfOf} where id between ${book} and ${book + 30}`,
    `delete from public.books where id = ${book}`,
    `update public.books b set id = ${other} where id = ${book} and not exists (select from public.notes where book = ${book})
      and not exists (select from public.book_tags where book = ${book}) and not exists (select from public.books o where o.id = ${other})`,
    `insert into public.notes values (${note}, (select id from public.books where id = ${book}), 'b')
      on conflict (id) do update set book = excluded.book, body = 'b${random(99)}'`,
    `update public.notes set body = 'n${random(99)}' where id = ${note}`,
    `update public.notes set book = (select id from public.books where id = ${other}) where book = ${book}`,
    `delete from public.notes where id = ${note}`,
    `insert into public.book_tags select ${book}, ${tag} where exists (select from public.books where id = ${book}) on conflict do nothing`,
    `delete from public.book_tags where book = ${book} and tag = ${tag}`,
    `update public.tags set name = 't${random(99)}' where id = ${tag}`,
    `insert into public.shelves values (${shelf}, 's${random(99)}') on conflict (id) do update set name = excluded.name`,
    `delete from public.shelves where id = ${shelf}`,
    `insert into public.readers values ('${["ann", "bob"][random(2)]}', ${random(2) === 0}) on conflict (person) do update set may_read = excluded.may_read`,
    `insert into public.owned values (${place}, 'ann', 'b') on conflict (id) do update set owner = ${owner}, body = 'o${random(99)}'`,
    `update public.owned set body = 'o${random(99)}' where id = ${place}`,
    `update public.owned set id = id + 20 where id = ${place}`,
    `update public.owned set id = ${place} where id = (select min(id) from public.owned where id > 20) and not exists (select from public.owned where id = ${place})`,
    `delete from public.owned where id = ${place}`,
    `update public.pairs set place = ${place}, body = 'x${random(99)}' where name = 'p${1 + random(8)}'`,
    `insert into public.loans values (${2 * place + random(12)}, ${place}, 'new') on conflict (id) do update set place = excluded.place`,
    `update public.loans set body = 'l${random(99)}', place = nullif(${random(6)}, 0) where id = ${1 + random(20)}`,
    `delete from public.loans where id = ${1 + random(20)}`,
    ...(random(30) === 0 ? ["truncate public.notes"] : ["update public.pairs set body = 'x'"]),
  ][random(26)]!;
}

/** The queries of a step take so long to run again. */
const RUNS_MS = 300;

test("after random changes of shown, hidden and other rows each client has what its caller reads", async () => {
  const random = makeRandom(11);
  const { owner, database } = fixture;
  const [other, third] = [1, 2].map(() => new pg.Client({ connectionString: database.ownerUrl })) as [
    pg.Client,
    pg.Client,
  ];
  await Promise.all([other.connect(), third.connect()]);
  const opened: { readonly person: string; readonly path: Query; readonly client: EventClient }[] = [];
  for (const person of ["ann", "bob"])
    for (const path of PATHS) opened.push({ person, path, client: await open(path, person) });
  for (let step = 0; step < propertyRuns(200); step++) {
    // Transactions follow each other, also at once, before a result was read again.
    const writers = random(3) === 0 ? [owner, other, third] : [owner];
    await Promise.all(
      writers.map(async (writer) => {
        for (let transaction = 0; transaction <= random(4); transaction++) await writeAtRandom(writer, random);
      }),
    );
    // While other statements run, the service pauses between the runs of queries.
    await sleep(RUNS_MS);
    await Promise.all(
      opened.map(async ({ path, person, client }) => {
        const expected = await readNow(path, person);
        await client.untilResultIs((result) => JSON.stringify(result) === expected);
      }),
    );
  }
  await Promise.all([other.end(), third.end()]);
});

async function writeAtRandom(writer: pg.Client, random: (below: number) => number): Promise<void> {
  const statements = Array.from({ length: 1 + random(3) }, () => randomStatement(random));
  await writer.query(["begin", ...statements, "commit"].join("; ")).catch(async (error) => {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await writer.query("rollback");
  });
}
