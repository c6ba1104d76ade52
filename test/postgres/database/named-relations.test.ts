import { expect, test } from "vitest";
import { findNamedRelations } from "../../../postgres/database/statement-shape.ts";

test.each([
  ['select * from "public"."items"', ['"public"."items"']],
  [
    "select * from public.items i join Public.Comments c on c.item_id = i.id",
    ['"public"."items"', '"public"."comments"'],
  ],
  ['select 1 from (select 1 from "a"."say ""hi""" as x) y', ['"a"."say ""hi"""']],
  ['insert into "public"."items" ("id") values ($1)', ['"public"."items"']],
  ['update only "public"."items" set "id" = $1', ['"public"."items"']],
  ['delete from "public"."items" where "items"."id" = $1', ['"public"."items"']],
  ['select * from "public"."search"($1)', ['"public"."search"']],
  ['select * from "public"."items", "page" join "page" on true', ['"public"."items"']],
  ["select * from pg_catalog.pg_class", []],
  ["select pg_backend_pid()", []],
])("%s names %j", (text, names) => {
  expect(findNamedRelations(text)).toEqual(names);
});

test("only some of very many relations are listed", () => {
  const joins = Array.from({ length: 100 }, (_, index) => `join a.t${index} on true`);
  expect(findNamedRelations(`select 1 from a.t ${joins.join(" ")}`)).toHaveLength(16);
});
