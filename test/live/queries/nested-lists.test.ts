import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { anonKey, openRealtimeFixture } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { EventClient } from "./event-client.ts";
import { makeRandom } from "./random.ts";

/** Rows of books are hidden by a policy; those of shelves and notes by conditions of queries alone. */
const SCHEMA = `
  create table public.shelves (id int primary key, name text);
  create table public.books (id int primary key, shelf int references public.shelves on delete cascade, pages int, hidden bool not null);
  create table public.notes (id int primary key, book int references public.books on delete cascade, body text, stars int);
  create index on public.books (shelf);
  create index on public.notes (book);
  create table public.tags (id int primary key, name text);
  create table public.books_tags (
    book int references public.books on delete cascade, tag int references public.tags on delete cascade, primary key (book, tag));
  alter table public.books enable row level security;
  create policy not_hidden on public.books for select using (not hidden);
  grant select on public.shelves, public.books, public.notes, public.tags, public.books_tags to anon;
  insert into public.tags select n, 't' || n from generate_series(1, 3) n`;

const PATHS = [
  "shelves?select=id,books(id,pages)&books.order=id&order=id",
  "shelves?select=id,books(id)&books.pages=gt.3&books.order=id&order=id",
  "shelves?select=id,books(id)&books.id=gt.3&books.order=id&order=id",
  "shelves?select=id,books(id)&books.shelf=eq.2&books.order=id&order=id",
  "shelves?select=id,books(id)&books.order=pages.desc,id&books.limit=1&order=id",
  "shelves?select=id,books(id)&books.order=id&books.limit=2&order=id&limit=2",
  "shelves?select=id,books(id)&books.order=id&books.limit=1&books.offset=1&order=id",
  "shelves?select=id,books!inner(id)&books.order=id&order=id",
  "shelves?select=id,books!inner(id)&books.pages=gt.3&books.order=id&order=id",
  "shelves?select=id,books!inner(id)&books.id=lt.5&books.order=id&order=id&limit=2",
  "shelves?select=id,books()&books=not.is.null&order=id",
  "shelves?select=id,books()&books=is.null&order=id",
  "shelves?select=id,books()&books.id=gt.4&books=is.null&order=id",
  "shelves?select=id,books(id)&books=is.null&order=id&limit=2",
  "shelves?select=id,books(count)&order=id",
  "shelves?select=id,...books(id,pages)&books.order=id&order=id",
  "shelves?select=id,books(id,notes(id,body))&books.order=id&books.notes.order=id&order=id",
  "shelves?select=id,books(id,notes(id))&books.order=id&books.limit=2&books.notes.stars=eq.1&books.notes.order=id&order=id",
  "shelves?select=id,books!inner(id,notes!inner(id))&books.order=id&books.notes.order=id&order=id",
  "shelves?select=id,books(id,notes())&books.notes=is.null&books.order=id&order=id",
  "shelves?select=id,books(id,notes!inner(id))&books.notes.stars=gte.2&books.order=id&order=id",
  "books?select=id,shelves(id,name)&order=id",
  "books?select=id,shelves!inner(id,name)&shelves.id=lt.3&order=id",
  "books?select=id,shelves(name)&order=shelves(name),id&limit=3",
  "books?select=id,notes(id)&notes.order=id.desc&notes.limit=1&order=id&limit=3",
  "books?select=id,shelf,notes(id)&or=(shelf.eq.1,notes.not.is.null)&notes.order=id&order=id",
  "books?select=id,tags(id,name)&tags.order=id&order=id",
  "books?select=id,tags!inner(id)&tags.id=eq.2&order=id",
  "books?select=id,tags()&tags=is.null&order=id",
  "tags?select=id,books(id)&books.order=id&books.pages=lt.6&order=id",
  "tags?select=id,books!inner(id)&books.order=id&order=id",
  "notes?select=id,books(id,shelves(id,name))&order=id",
  "notes?select=id,books!inner(id)&order=id&limit=3",
  "notes?select=id,books!inner(shelf)&books.shelf=eq.1&order=id",
];

const BY_ID = "orderBy: [{id: ASC}]";
/** Fields of the GraphQL type Query. */
const SELECTIONS = [
  `shelves(${BY_ID}) { edges { node { id books(${BY_ID}) { id pages } } } }`,
  `shelves(${BY_ID}) { edges { node { id books(where: {pages: {gt: 3}}, ${BY_ID}) { id } } } }`,
  `shelves(${BY_ID}) { edges { node { id books(where: {id: {gt: 3}}, ${BY_ID}) { id } } } }`,
  `shelves(${BY_ID}) { edges { node { id books(where: {shelf_: {eq: 2}}, ${BY_ID}) { id } } } }`,
  `shelves(${BY_ID}) { edges { node { id books(limit: 1, offset: 1, orderBy: [{pages: DESC}, {id: ASC}]) { id } } } }`,
  `shelves(first: 2, ${BY_ID}) { totalCount pageInfo { hasNextPage } edges { node { id books(limit: 2, ${BY_ID}) { id } } } }`,
  `shelves(first: 2, ${BY_ID}) { edges { node { id books(limit: 2, ${BY_ID}) { id notes(limit: 1, orderBy: [{id: DESC}]) { id body } } } } }`,
  `shelves(where: {books: {some: {pages: {gt: 3}}}}, ${BY_ID}) { edges { node { id books(${BY_ID}) { id } } } }`,
  `shelves(where: {books: {none: {id: {gt: 2}}}}, ${BY_ID}) { edges { node { id } } }`,
  `shelves(where: {books: {every: {notes: {some: {}}}}}, ${BY_ID}) { edges { node { id } } }`,
  `shelf(id: 1) { id books(where: {notes: {none: {}}}, ${BY_ID}) { id } }`,
  `books(${BY_ID}) { edges { node { id shelf { id name } notes(where: {stars: {gte: 2}}, ${BY_ID}) { id } } } }`,
  `books(first: 3, orderBy: [{shelf: {name: ASC}}, {id: ASC}]) { edges { node { id notes(${BY_ID}) { id } } } }`,
  `books(where: {notes: {some: {stars: {eq: 1}}}}, ${BY_ID}) { edges { node { id notes(limit: 1, ${BY_ID}) { id } } } }`,
  `books(where: {shelf: {name: {eq: "s1"}}}, ${BY_ID}) { edges { node { id } } }`,
  `book(id: 3) { id shelf { name } notes(${BY_ID}) { id } }`,
  `notes(${BY_ID}) { edges { node { id book { id shelf { id books(${BY_ID}) { id } } } } } }`,
];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));

function randomStatement(random: (below: number) => number): string {
  const [shelf, book, note, tag] = [1 + random(4), 1 + random(8), 1 + random(10), 1 + random(3)];
  const someBook = `(select id from public.books where id = ${book})`;
  return [
    `insert into public.shelves values (${shelf}, 's${random(5)}') on conflict (id) do update set name = excluded.name`,
    `insert into public.books select ${book}, s.id, ${random(8)}, ${random(3) === 0} from public.shelves s where s.id = ${shelf}
      on conflict (id) do update set shelf = excluded.shelf, pages = excluded.pages, hidden = excluded.hidden`,
    `update public.books set hidden = not hidden where id = ${book}`,
    `update public.books set pages = ${random(8)} where id = ${book}`,
    `update public.books set shelf = (select id from public.shelves where id = ${shelf}) where id = ${book}`,
    `insert into public.notes values (${note}, ${someBook}, 'b${random(9)}', ${random(4)})
      on conflict (id) do update set book = excluded.book, body = excluded.body, stars = excluded.stars`,
    `delete from public.notes where id = ${note}`,
    `delete from public.books where id = ${book}`,
    `delete from public.shelves where id = ${shelf}`,
    `insert into public.books_tags select b.id, ${tag} from public.books b where b.id = ${book} on conflict do nothing`,
    `delete from public.books_tags where book = ${book} and tag = ${tag}`,
    `update public.tags set name = 't${random(5)}' where id = ${tag}`,
    `insert into public.shelves values (${shelf}, 's${random(5)}') on conflict (id) do nothing`,
  ][random(13)]!;
}

const asText = (value: unknown) => JSON.stringify(value);
const headers = { apikey: anonKey };

type Reader = { readonly name: string; readonly client: EventClient; read(): Promise<string> };

async function openPath(path: string): Promise<Reader> {
  const url = `${fixture.service.url}/rest/v1/${path}`;
  const read = async () => asText(await (await fetch(url, { headers })).json());
  return { name: path, client: await EventClient.open(url, headers), read };
}

async function openSelection(selection: string): Promise<Reader> {
  const urlOf = (query: string) => `${fixture.service.url}/graphql?query=${encodeURIComponent(query)}`;
  const read = async () => {
    const response = await fetch(urlOf(`{ ${selection} }`), { headers });
    return asText(((await response.json()) as { data: unknown }).data);
  };
  return {
    name: selection,
    client: await EventClient.open(urlOf(`subscription { live { ${selection} } }`), headers),
    read,
  };
}

test.each(Array.from({ length: propertyRuns(1) }, (_, seed) => seed + 1))(
  "nested lists, however they are filtered and ordered, follow each change of their rows, also of hidden ones (seed %i)",
  async (seed) => {
    const random = makeRandom(seed);
    const typename = `${fixture.service.url}/graphql?query={__typename}`;
    await until(async () => (await fetch(typename, { headers })).status === 200);
    const readers: Reader[] = [];
    for (const path of PATHS) readers.push(await openPath(path));
    for (const selection of SELECTIONS) readers.push(await openSelection(selection));
    for (let step = 0; step < 20; step++) {
      const statement = randomStatement(random);
      await fixture.owner.query(statement);
      for (const { client, read } of readers) {
        const expected = await read();
        await client.untilResultIs((result) => asText(result) === expected);
      }
    }
    for (const { client } of readers) client.close();
    expect(readers.some(({ client }) => client.results.length > 3)).toBe(true);
  },
);
