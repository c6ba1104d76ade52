import {
  buildClientSchema,
  type GraphQLSchema,
  getIntrospectionQuery,
  isInputObjectType,
  isObjectType,
  printType,
} from "grafast/graphql";
import { makeSchema } from "graphile-build";
import { describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { RoleSchemas, type RoleSchemasOptions } from "../../../graphql/schemas/role-schemas.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { openPreset, type PresetOptions } from "../../plugins/open-preset.ts";
import { Wire } from "../server/socket/wire.ts";

const SHOPS = `
  revoke execute on all functions in schema public from public;
  alter default privileges revoke execute on functions from public;

  create table public.shops (id integer primary key, name text not null, margin numeric);
  insert into public.shops values (1, 'Corner', 0.5);
  grant select (id, name) on public.shops to anon, authenticated;
  grant insert (id, name), update (name), delete on public.shops to authenticated;
  grant select, insert (margin), update (margin) on public.shops to admin;
  comment on table public.shops is '@subscription onShopOpened on:insert';
  comment on column public.shops.margin is '@filterable';
  comment on column public.shops.name is '@filterable';

  create type public.grade as enum ('good', 'bad');
  create table public.audits (
    id integer primary key,
    shop_id integer not null references public.shops,
    grade public.grade
  );
  insert into public.audits values (7, 1, 'good');
  grant select, insert, update, delete on public.audits to admin;
  comment on table public.audits is '@subscription onAudit on:insert';

  create table public.letters (id integer generated always as identity primary key, text text not null, verdict text);
  grant insert (text) on public.letters to anon, admin;
  grant select on public.letters to admin;

  create function public.close_shop(id integer) returns boolean language sql volatile as 'select true';
  create function public.shops_turnover(shop public.shops) returns numeric language sql stable as 'select 1.0';
  create function public.busiest_shop() returns public.shops language sql stable as 'select * from public.shops limit 1';
  create function public.named_like(word text) returns setof public.shops language sql stable
    as 'select * from public.shops where name ~ word';
  comment on function public.named_like(text) is '@filter';
  grant execute on function public.close_shop, public.shops_turnover, public.busiest_shop, public.named_like to admin;

  create table public.secrets (id integer primary key, word text);
  insert into public.secrets values (1, 'sesame');
  grant select on public.secrets to admin;
  create function public.my_secret() returns public.secrets language sql stable security definer
    as 'select * from public.secrets limit 1';
  grant execute on function public.my_secret to authenticated;
`;

const graphql = useFixture(() => serveGraphQL({ template: "empty", before: SHOPS }));

const user = tokenFor(1);
const admin = tokenFor(2, { role: "admin" });

async function introspect(token?: string): Promise<GraphQLSchema> {
  const { data, errors } = await graphql.ask(getIntrospectionQuery(), token === undefined ? {} : { token });
  expect(errors).toBeUndefined();
  return buildClientSchema(data);
}

function fieldsOf(schema: GraphQLSchema, typeName: string): string[] {
  const type = schema.getType(typeName);
  return isObjectType(type) || isInputObjectType(type) ? Object.keys(type.getFields()).sort() : [];
}

function argumentsOf(schema: GraphQLSchema, field: string): string[] {
  return (schema.getQueryType()!.getFields()[field]?.args ?? []).map(({ name }) => name);
}

const faults = async (query: string, token?: string) => {
  const { data, errors } = await graphql.ask(query, token === undefined ? {} : { token });
  return { data, faults: toFaults(errors) };
};

type Fault = { readonly message: string; readonly extensions: { readonly code: string } };

function toFaults(errors: readonly Fault[] = []): [code: string, message: string][] {
  return errors.map(({ message, extensions }) => [extensions.code, message]);
}

describe("the schema of a caller", () => {
  test.each([
    ["who is signed in", user],
    ["who is not, and could sign in", undefined],
  ])("omits %s if only others may use it", async (_, token) => {
    const schema = await introspect(token);
    expect(fieldsOf(schema, "Query")).toEqual(["mySecret", "shop", "shopSearchResults", "shops"]);
    expect(fieldsOf(schema, "Subscription")).toEqual(["live", "onShopOpened"]);
    expect(fieldsOf(schema, "Shop")).toEqual(["id", "name"]);
    expect(fieldsOf(schema, "CreateShopInput")).toEqual(["id", "name"]);
    expect(fieldsOf(schema, "UpdateShopInput")).toEqual(["name"]);
    expect(fieldsOf(schema, "ShopFilterInput")).toEqual(["name"]);
    expect(argumentsOf(schema, "shops")).toEqual([
      "first",
      "after",
      "last",
      "before",
      "name",
      "filter",
      "where",
      "orderBy",
    ]);
    expect(fieldsOf(schema, "ShopWhereInput")).toEqual(["and", "id", "name", "not", "or", "search"]);
    expect(fieldsOf(schema, "ShopOrderByInput")).toEqual(["id", "name", "searchRank"]);
    const names = Object.keys(schema.getTypeMap()).filter((name) => /Audit|Grade|BigFloat/.test(name));
    expect(names).toEqual([]);
  });

  test("has the elements that its role may use", async () => {
    const schema = await introspect(admin);
    expect(fieldsOf(schema, "Query")).toEqual(
      expect.arrayContaining(["audit", "audits", "busiestShop", "letters", "mySecret", "secrets", "shop"]),
    );
    expect(fieldsOf(schema, "Mutation")).toEqual(expect.arrayContaining(["closeShop", "createAudit", "createLetter"]));
    expect(fieldsOf(schema, "Subscription")).toEqual(["live", "onAudit", "onShopOpened"]);
    expect(fieldsOf(schema, "Shop")).toEqual(["audits", "id", "margin", "name", "turnover"]);
    expect(fieldsOf(schema, "CreateShopInput")).toEqual(["id", "margin", "name"]);
    expect(fieldsOf(schema, "ShopFilterInput")).toEqual(["margin", "name", "word"]);
    expect(argumentsOf(schema, "shops")).toContain("margin");
    expect(Object.keys(schema.getTypeMap())).toContain("Grade");
  });

  test("refuses a kind of operation of which it has no field", async () => {
    const own = await serveGraphQL({
      template: "empty",
      before: "create table public.pages (id integer primary key); grant select on public.pages to anon",
    });
    try {
      const { data, errors } = await own.ask("mutation { createPage(input: { id: 1 }) { id } }");
      const message = "The schema has no mutation that you may use.";
      expect({ data, faults: toFaults(errors) }).toEqual({ faults: [["GRAPHQL_VALIDATION_FAILED", message]] });
    } finally {
      await own.stop();
    }
  });

  test("reveals no more by name than by list", async () => {
    const ask = `{ hidden: __type(name: "Audit") { name } shown: __type(name: "Shop") { name } }`;
    expect(await faults(ask)).toEqual({ data: { hidden: null, shown: { name: "Shop" } }, faults: [] });
    expect((await faults(ask, admin)).data).toEqual({ hidden: { name: "Audit" }, shown: { name: "Shop" } });
  });

  test("validates documents and makes suggestions", async () => {
    const invalid = async (query: string, token?: string) => (await faults(query, token)).faults;
    const of = (message: string) => [["GRAPHQL_VALIDATION_FAILED", message]];
    expect(await invalid("{ audits { totalCount } }")).toEqual(of(`Cannot query field "audits" on type "Query".`));
    expect(await invalid("{ audit(id: 7) { id } }", user)).toEqual(of(`Cannot query field "audit" on type "Query".`));
    expect(await invalid("{ shop(id: 1) { margi } }")).toEqual(of(`Cannot query field "margi" on type "Shop".`));
    expect(await invalid("{ shops(margin: 1) { totalCount } }")).toEqual(
      of(`Unknown argument "margin" on field "Query.shops".`),
    );
    expect(await invalid("mutation { closeSho(id: 1) }")).toEqual(
      of(`Cannot query field "closeSho" on type "Mutation".`),
    );
    expect(await invalid("{ shop(id: 1) { margi } }", admin)).toEqual(
      of(`Cannot query field "margi" on type "Shop". Did you mean "margin"?`),
    );
    expect(await invalid("{ shop(id: 1) { audits { id grade } } }", admin)).toEqual([]);
  });

  test("keeps fields for anonymous callers that need a sign-in", async () => {
    expect(await faults("{ mySecret { word } }")).toMatchObject({ faults: [["AUTH_REQUIRED", "Sign in to do this."]] });
    expect(await faults(`mutation { createShop(input: { id: 2, name: "b" }) { name } }`)).toMatchObject({
      faults: [["AUTH_REQUIRED", "Sign in to do this."]],
    });
  });

  test("has the rows of a SECURITY DEFINER function, and not their table", async () => {
    expect(await faults("{ mySecret { id word } }", user)).toEqual({
      data: { mySecret: { id: "1", word: "sesame" } },
      faults: [],
    });
  });

  test("returns true if a caller may insert rows and select none", async () => {
    const create = (selection: string) => `mutation { createLetter(input: { text: "x" }) ${selection} }`;
    expect(printType((await introspect()).getType("Mutation")!)).toContain(
      "createLetter(input: CreateLetterInput!): Boolean!",
    );
    expect(await faults(create(""))).toEqual({ data: { createLetter: true }, faults: [] });
    expect((await faults(create("{ text verdict }"), admin)).data).toEqual({
      createLetter: { text: "x", verdict: null },
    });
  });

  test("of a role without privileges has isEmpty", async () => {
    const token = tokenFor(3, { role: "service_role" });
    expect(fieldsOf(await introspect(token), "Query")).toEqual(["isEmpty"]);
    expect(await faults("{ isEmpty }", token)).toEqual({ data: { isEmpty: true }, faults: [] });
    expect((await faults("{ isEmpty }")).faults[0]).toEqual([
      "GRAPHQL_VALIDATION_FAILED",
      `Cannot query field "isEmpty" on type "Query".`,
    ]);
  });

  test("for an unknown role is the anonymous one, without a statement", async () => {
    const token = tokenFor(4, { role: "nobody_at_all" });
    expect((await faults("{ audits { totalCount } }", token)).faults[0]![0]).toBe("GRAPHQL_VALIDATION_FAILED");
    expect((await faults("{ shops { totalCount } }", token)).faults[0]![0]).toBe("PERMISSION_DENIED");
  });

  test("is that of the socket's token", async () => {
    const outcomes = await Promise.all(
      [{}, { Authorization: `Bearer ${admin}` }].map(async (payload) => {
        const wire = await Wire.open(graphql.socketUrl, "graphql-transport-ws");
        wire.say({ type: "connection_init", payload });
        await wire.hear();
        wire.say({ type: "subscribe", id: "s", payload: { query: "{ audits { totalCount } }" } });
        const answer = await wire.hear();
        wire.close();
        return answer;
      }),
    );
    expect(outcomes).toMatchObject([
      { type: "error", payload: [{ extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }] },
      { type: "next", payload: { data: { audits: { totalCount: 1 } } } },
    ]);
  });

  test("follows grants and revokes", async () => {
    const count = () => faults("{ audits { totalCount } }", user);
    await graphql.sql("grant select on public.audits to authenticated");
    await expect.poll(count).toEqual({ data: { audits: { totalCount: 1 } }, faults: [] });
    await graphql.sql("revoke select on public.audits from authenticated");
    await expect.poll(async () => (await count()).faults[0]?.[0]).toBe("GRAPHQL_VALIDATION_FAILED");
  });
});

describe("roles", () => {
  const LIMITS = { depth: 15, complexity: 1000, tokens: 15_000, aliases: 1000, directives: 500, rootFields: 500 };

  async function open(preset: PresetOptions, options: Partial<RoleSchemasOptions> = {}): Promise<RoleSchemas> {
    await using opened = await openPreset(preset);
    const made = await makeSchema(opened.preset);
    const from = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
    const { catalog } = await loadCatalog(opened.owner, from);
    return new RoleSchemas({ ...made, catalog, anonRole: "anon", limits: LIMITS, ...options });
  }

  test("with the same visible elements share a schema and its documents", async () => {
    const schemas = await open({});
    expect(await schemas.schemaOf("authenticated")).toBe(await schemas.schemaOf("anon"));
    expect(await schemas.schemaOf("admin")).toBe(await schemas.schemaOf("anon"));
    expect(await schemas.schemaOf("authenticator")).not.toBe(await schemas.schemaOf("anon"));
  });

  test("keep their schemas while the cache has room for all of them", async () => {
    const options = { template: "empty", sql: SHOPS } as const;
    const roomy = await open(options);
    const [anon, admin] = [await roomy.schemaOf("anon"), await roomy.schemaOf("admin")];
    expect([(await roomy.schemaOf("anon")) === anon, (await roomy.schemaOf("admin")) === admin]).toEqual([true, true]);

    const cramped = await open(options, { maxTypes: 1 });
    const first = await cramped.schemaOf("anon");
    const document = runToCompletion(first.documents.read("{ shops { totalCount } }"));
    expect(await cramped.schemaOf("anon")).toBe(first);
    expect((await cramped.schemaOf("admin")).schema.getType("Audit")).toBeDefined();
    expect(await cramped.schemaOf("anon")).not.toBe(first);
    expect(runToCompletion(first.documents.read("{ shops { totalCount } }"))).toBe(document);
  });
});
