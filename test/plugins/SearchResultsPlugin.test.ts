import { isEnumType, isInputObjectType, isObjectType } from "grafast/graphql";
import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.results (
      id int primary key, rank int, highlight text, search text, search_rank int, "searchHighlight" text
    );
    create table public.notes (id int generated always as identity primary key, text text not null, result_id int references public.results);
    create function public.search_rank(note public.notes) returns text language sql stable as $$ select 'own' $$;
    create table public.numbers (id int primary key);
    grant all on all tables in schema public to anon;
    insert into public.results values (1, 7, 'high', 'cats and dogs', 9, 'own'), (2, 8, 'low', 'cats, cats, cats', 10, 'other');
    insert into public.notes (text, result_id) values ('a cat', 1), ('cat cat', 1);
  `,
});

function fieldsOf(name: string): string[] {
  const type = generated.schema.getType(name);
  return isObjectType(type) || isInputObjectType(type) ? Object.keys(type.getFields()) : [];
}

test("columns and functions keep their names beside the results of a search", async () => {
  const cats = 'search: { fields: [{ search: TEXT }], plfts: { query: "cats", language: "english" } }';
  const { resultSearchResults: results, noteSearchResults: notes } = await generated.read(
    anonymous,
    `{
      resultSearchResults(
        where: { rank: { gt: 1 }, highlight: { neq: "x" }, search: { like: "cats%" }, search_: { fields: [{ search: TEXT }], fts: { query: "cats" } } }
        orderBy: [{ searchRank_: { ${cats} } }, { searchRank: DESC }, { search: ASC }]
      ) { edges { node { id rank highlight search searchRank searchHighlight } searchHighlight(${cats}) } }
      noteSearchResults { edges { node { searchRank } searchRank(search: { fields: [{ text: TEXT }], fts: { query: "cat" } }) } }
    }`,
  );
  expect(results.edges).toEqual([
    {
      node: {
        id: "2",
        rank: 8,
        highlight: "low",
        search: "cats, cats, cats",
        searchRank: 10,
        searchHighlight: "other",
      },
      searchHighlight: "<b>cats</b>, <b>cats</b>, <b>cats</b>",
    },
    {
      node: { id: "1", rank: 7, highlight: "high", search: "cats and dogs", searchRank: 9, searchHighlight: "own" },
      searchHighlight: "<b>cats</b> and dogs",
    },
  ]);
  expect(notes.edges[0]).toEqual({ node: { searchRank: "own" }, searchRank: expect.closeTo(0.06, 2) });
});

test("rows of relations are ordered by rank too", async () => {
  const { result } = await generated.read(
    anonymous,
    `{ result(id: 1) { notes(orderBy: { searchRank: { search: { fields: [{ text: TEXT }], fts: { query: "cat" } } } }) { text } } }`,
  );
  expect(result.notes).toEqual([{ text: "cat cat" }, { text: "a cat" }]);
});

test("the edges of all rows have no fields of searches", () => {
  expect(fieldsOf("NoteEdge").sort()).toEqual(["cursor", "node"]);
});

test("a table without texts has no such fields", () => {
  expect(fieldsOf("Query")).toContain("noteSearchResults");
  expect(fieldsOf("Query")).not.toContain("numberSearchResults");
  expect(fieldsOf("NoteSearchResultEdge").sort()).toEqual(["cursor", "node", "searchHighlight", "searchRank"]);
  expect(fieldsOf("NumberOrderByInput")).toEqual(["id"]);
});

test("tables and functions keep the names that searches would have", async () => {
  await generated.owner.query(`
    create table public.note_search_results (id int primary key);
    create function public.result_search_results() returns text language sql stable as $$ select 'own' $$;
    create type public.result_search_result_edge as enum ('own');
    create table public.edges (id int primary key, of public.result_search_result_edge);
    grant select on public.note_search_results, public.edges to anon`);
  await generated.renew();
  const { notes, own } = await generated.read(
    anonymous,
    `{
      notes: noteSearchResults_(first: 1) {
        edges { __typename searchHighlight(search: { fields: [{ text: TEXT }], fts: { query: "cat" } }) }
      }
      own: resultSearchResults
    }`,
  );
  expect(notes.edges).toEqual([{ __typename: "NoteSearchResultEdge_", searchHighlight: "a <b>cat</b>" }]);
  expect(own).toBe("own");
  expect(isEnumType(generated.schema.getType("ResultSearchResultEdge"))).toBe(true);
});
