import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readQueryDependencies } from "../../../live/queries/query-dependencies.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await cloneDatabase("content");
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`
    create table public.films (id int primary key, title text);
    create extension fuzzystrmatch schema public;
    create function public.own(text, text) returns int language c immutable strict as '$libdir/fuzzystrmatch', 'levenshtein'`);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const claimsOf = async (text: string) => {
  const statement = { text, role: "authenticated", searchPath: "public" };
  return (await readQueryDependencies((work) => work(client), statement, "missing")).claims;
};

test("a function in C depends on no claims if it is an extension's, and may depend on all if it is not", async () => {
  expect(await claimsOf("select public.levenshtein(title, 'x') from public.films")).toEqual(new Set());
  expect(await claimsOf("select public.own(title, 'x') from public.films")).toBe("all");
});
