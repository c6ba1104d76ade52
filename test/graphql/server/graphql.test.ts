import { expect, test } from "vitest";
import { serveGraphQL } from "../../graphql.ts";

const PATIENCE = `
  create function public.patience() returns text language sql stable return current_setting('statement_timeout');
  grant execute on function public.patience to anon`;

test.each([
  ["less time than others", "7", "30", "20", "7s"],
  ["no more time than others", "7", "5", "20", "5s"],
  ["no more time than those of anonymous callers have elsewhere", "7", "30", "4", "4s"],
  ["what time it takes, where nothing limits it", "0", "0", "0", "0"],
])("a statement of GraphQL has %s", async (_, own, others, anonymous, patience) => {
  const settings = {
    GRAPHQL_STATEMENT_TIMEOUT_SECONDS: own,
    DB_STATEMENT_TIMEOUT_SECONDS: others,
    DB_ANON_STATEMENT_TIMEOUT_SECONDS: anonymous,
  };
  const graphql = await serveGraphQL({ template: "empty", settings, before: PATIENCE });
  expect((await graphql.ask("{ patience }")).data).toEqual({ patience });
  await graphql.stop();
});

const EXTENSIONS = `
  create schema if not exists extensions;
  grant usage on schema extensions to anon;
  create extension citext schema extensions;
  create extension hstore schema extensions;
  create table public.members (id integer primary key, name extensions.citext unique, traits extensions.hstore);
  grant select, insert on public.members to anon;
  comment on table public.members is '@order name';
  create function public.is_alike(one text, other text) returns boolean language plpgsql stable
    as 'begin return one::citext = other::citext; end';
  grant execute on function public.is_alike to anon`;

test("types and operators of extensions are found in their schemas", async () => {
  const graphql = await serveGraphQL({ template: "empty", before: EXTENSIONS });
  const CREATE = `mutation { createMember(input: { id: 1, name: "Ada", traits: { eyes: "blue" } }) { name traits } }`;
  expect((await graphql.ask(CREATE)).data).toEqual({ createMember: { name: "Ada", traits: { eyes: "blue" } } });

  const PAGE = `query ($after: String) { members(name: "ADA", first: 1, after: $after) { edges { cursor node { id } } } }`;
  const { edges } = (await graphql.ask(PAGE)).data.members;
  expect(edges).toMatchObject([{ node: { id: "1" } }]);
  const after = edges[0].cursor;
  expect((await graphql.ask(PAGE, { variables: { after } })).data).toEqual({ members: { edges: [] } });
  expect((await graphql.ask(`{ isAlike(one: "a", other: "A") }`)).data).toEqual({ isAlike: true });
  await graphql.stop();
});
