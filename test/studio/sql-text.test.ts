import pg from "pg";
import { expect, test } from "vitest";
import { identifier, identifierOf, identifierOfRole } from "../../studio/sql-text.ts";
import { cloneDatabase } from "../database.ts";

test("identifiers are quoted where Postgres quotes them, keywords included", async () => {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const keywords = await owner.query<{ word: string }>("select word from pg_get_keywords()");
  const names = [
    "notes",
    "Mixed",
    "with space",
    'with "quotes"',
    "1st",
    "a$b",
    "ä",
    ...keywords.rows.map(({ word }) => word),
  ];
  const { rows } = await owner.query<{ quoted: string[] }>(
    "select array(select quote_ident(name) from unnest($1::text[]) with ordinality as u (name, at) order by at) as quoted",
    [names],
  );
  expect(names.map(identifier)).toEqual(rows[0]!.quoted);
  await owner.end();
  await database.drop();
});

test("names of tables and roles have their parts quoted, and PUBLIC is a keyword", () => {
  expect(identifierOf({ schema: "public", name: "order" })).toBe('public."order"');
  expect(identifierOfRole("public")).toBe("public");
  expect(identifierOfRole("user")).toBe('"user"');
});
