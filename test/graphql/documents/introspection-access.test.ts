import { getIntrospectionQuery } from "grafast/graphql";
import { afterEach, describe, expect, test } from "vitest";
import { type GraphQLService, serveGraphQL, tokenFor } from "../../graphql.ts";

const THINGS = `
  create type public.size as enum ('small', 'large');
  create table public.things (id integer primary key, name text, size public.size);
  comment on column public.things.name is '@filterable';
  grant select on public.things to anon, authenticated`;

let graphql: GraphQLService;
afterEach(() => graphql.stop());

const open = async (introspection: string) => {
  graphql = await serveGraphQL({
    template: "empty",
    before: THINGS,
    settings: { GRAPHQL_INTROSPECTION: introspection },
  });
};

const TOKEN = tokenFor(1);
const BY_VARIABLE = "query ($filter: ThingFilterInput) { things(filter: $filter) { totalCount } }";

const errorsOf = async (query: string, request = {}) => {
  const { errors = [] } = await graphql.ask(query, request);
  return errors.map((error: { message: string; extensions: { code: string } }) => [
    error.extensions.code,
    error.message,
  ]);
};

describe("GRAPHQL_INTROSPECTION", () => {
  test("off: no role can read the schema, not by suggestions either", async () => {
    await open("off");
    const refused = [["GRAPHQL_VALIDATION_FAILED", "Introspection is disabled."]];
    for (const request of [{}, { token: TOKEN }]) {
      expect(await errorsOf(getIntrospectionQuery(), request)).toEqual(refused);
      expect(await errorsOf(`{ ... on Query { type: __type(name: "Thing") { name } } }`, request)).toEqual(refused);
      expect(await errorsOf("{ thing(id: 1) { nam } }", request)).toEqual([
        ["GRAPHQL_VALIDATION_FAILED", `Cannot query field "nam" on type "Thing".`],
      ]);
      expect(await errorsOf(BY_VARIABLE, { ...request, variables: { filter: { nme: "x" } } })).toEqual([
        ["VALIDATION_ERROR", expect.not.stringContaining("Did you mean")],
      ]);
    }
    expect((await graphql.ask("{ __typename thing(id: 1) { __typename } }")).data).toEqual({
      __typename: "Query",
      thing: null,
    });
  });

  test("authenticated: roles other than the anonymous one can read it", async () => {
    await open("authenticated");
    const refused = [["AUTH_REQUIRED", "Sign in to use introspection."]];
    expect(await errorsOf("{ __schema { queryType { name } } }")).toEqual(refused);
    expect(await errorsOf("{ __schema { queryType { name } } }", { token: tokenFor(1, { role: "anon" }) })).toEqual(
      refused,
    );
    expect(await errorsOf("{ thing(id: 1) { nam } }")).toEqual([
      ["GRAPHQL_VALIDATION_FAILED", `Cannot query field "nam" on type "Thing".`],
    ]);
    expect((await graphql.ask("{ __schema { queryType { name } } }", { token: TOKEN })).data).toEqual({
      __schema: { queryType: { name: "Query" } },
    });
    expect(await errorsOf("{ thing(id: 1) { nam } }", { token: TOKEN })).toEqual([
      ["GRAPHQL_VALIDATION_FAILED", `Cannot query field "nam" on type "Thing". Did you mean "name"?`],
    ]);
  });

  test("all: all roles can read it", async () => {
    await open("all");
    expect(await errorsOf(getIntrospectionQuery())).toEqual([]);
    expect(await errorsOf("{ thing(id: 1) { nam } }")).toEqual([
      ["GRAPHQL_VALIDATION_FAILED", `Cannot query field "nam" on type "Thing". Did you mean "name"?`],
    ]);
  });
});
