import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { openResources, type Resources } from "../open-resources.ts";

const TABLES = `
  create table public.shelves (id int primary key);
  create table public.books (id int primary key, shelf_id int not null references shelves, the_title text, price int);
  insert into shelves values (1), (2);
  insert into books values (1, 1, 'Emma', 3), (2, 2, 'Ulysses', 4), (3, 2, 'Walden', 5);
  grant select on public.shelves, public.books to anon;
  grant select on public.shelves to authenticated;
  grant select (id, shelf_id) on public.books to authenticated;`;

let ask: Resources["ask"];

const resources = useFixture(() => openResources({ template: "empty", sql: TABLES }));
beforeAll(async () => {
  ask = resources.ask;
  await resources.seen("/api/v1/books");
});

const twice = async (path: string, sent?: Parameters<Resources["ask"]>[1]) => {
  const [first, second] = [await ask(path, sent), await ask(path, sent)];
  expect([second.status, second.text]).toEqual([first.status, first.text]);
  return second;
};
const idsIn = ({ body }: { readonly body: { readonly data: { readonly id: number }[] } }) =>
  body.data.map(({ id }) => id);

test("the same query text gives the rows of each address", async () => {
  for (const words of ["", "?limit=5", "?sort=id:desc"]) {
    const order = (ids: number[]) => (words.includes("desc") ? ids.toReversed() : ids);
    expect(idsIn(await twice(`/api/v1/books${words}`))).toEqual(order([1, 2, 3]));
    expect(idsIn(await twice(`/api/v1/shelves/1/books${words}`))).toEqual([1]);
    expect(idsIn(await twice(`/api/v1/shelves/2/books${words}`))).toEqual(order([2, 3]));
    expect(idsIn(await twice(`/api/v1/books${words}`))).toEqual(order([1, 2, 3]));
  }
});

test("another query text gives other rows, however similar the two are", async () => {
  expect(idsIn(await twice("/api/v1/books?price=3"))).toEqual([1]);
  expect(idsIn(await twice("/api/v1/books?price=4"))).toEqual([2]);
  expect(idsIn(await twice("/api/v1/books?price=4&limit=0"))).toEqual([]);
});

test("each role, in each version, gets the rows that it may see", async () => {
  const fields = async (path: string, sent?: Parameters<Resources["ask"]>[1]) =>
    Object.keys((await twice(path, sent)).body.data[0]);
  expect(await fields("/api/v1/books?limit=1")).toEqual(["id", "shelf_id", "the_title", "price"]);
  expect(await fields("/api/v1/books?limit=1", { as: { role: "authenticated" } })).toEqual(["id", "shelf_id"]);
  expect(await fields("/api/v2/books?limit=1")).toEqual(["id", "shelfId", "theTitle", "price"]);
});

test("only the rest of a query with an API key is cached", async () => {
  expect((await ask("/api/v1/books?limit=2&api_key=unknown")).status).toBe(401);
  expect(idsIn(await twice("/api/v1/books?limit=2"))).toEqual([1, 2]);
});

test("the same query text follows a renamed column", async () => {
  const words = "/api/v1/shelves?sort=id&limit=1";
  expect(await twice(words)).toMatchObject({ status: 200, body: { data: [{ id: 1 }] } });
  await resources.owner.query(`
    alter table public.shelves rename column id to number;
    alter table public.shelves add column id int not null default 9;`);
  await expect.poll(async () => (await ask(words)).body.data?.[0]).toEqual({ number: 1, id: 9 });
});
