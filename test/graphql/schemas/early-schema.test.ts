import fc from "fast-check";
import {
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  printSchema,
} from "grafast/graphql";
import { makeSchema } from "graphile-build";
import { expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { EarlySchema } from "../../../graphql/schemas/early-schema.ts";
import { RoleSchemas } from "../../../graphql/schemas/role-schemas.ts";
import { buildSchemaInSteps } from "../../../graphql/schemas/stepwise-build.ts";
import { runToCompletion } from "../../../runtime/concurrency/stepwise.ts";
import { useFixture } from "../../fixture.ts";
import { openPreset } from "../../plugins/open-preset.ts";
import { propertyRuns } from "../../property-runs.ts";

const BASE = `
  create table public.shops (id int primary key, name text not null, margin numeric, email text);
  create table public.audits (id int primary key, shop_id int references public.shops, word text);
  comment on column public.shops.email is '@personal';
  grant select (id, name) on public.shops to anon;
  grant select, insert, update, delete on public.shops to authenticated;
  grant select on public.audits to admin`;

const STEPS = [
  "create table public.parts (id int primary key, audit_id int references public.audits, kind text)",
  "grant select, insert on public.parts to anon",
  "grant select (id) on public.parts to authenticated",
  "create table public.audit (id int primary key); grant select on public.audit to authenticated",
  "alter table public.shops add column open boolean default true",
  "grant insert (name) on public.shops to anon",
  "alter table public.shops drop column margin",
  "alter table public.audits rename column word to label",
  "revoke all on public.shops from authenticated",
  "grant insert, update on public.audits to authenticated",
  "create function public.busiest() returns public.shops language sql stable as 'select * from public.shops limit 1'",
  "create function public.shops_turnover(shop public.shops) returns int language sql stable as 'select 1'",
  "create function public.create_shop(name text) returns int language sql volatile as 'select 1'",
  "revoke execute on all functions in schema public from public, anon",
  "create type public.mood as enum ('good'); alter table public.audits add column mood public.mood",
  "create view public.names as select id, name from public.shops; grant select on public.names to anon",
  "comment on table public.audits is '@name inspections'",
  "drop table public.parts",
];

const ROLES = ["anon", "authenticated", "admin"];
const LIMITS = {
  depth: 20,
  complexity: 1e6,
  tokens: 1e6,
  aliases: 1e3,
  directives: 1e3,
  rootFields: 1e3,
};

const opened = useFixture(() => openPreset({ template: "empty" }));

test("operations on a schema that is being built are accepted as on the schema of the role, and change nothing in it", async () => {
  const counts = { early: 0, whole: 0 };
  const anyHistory = fc.shuffledSubarray(STEPS, { minLength: 2 });
  await fc.assert(
    fc.asyncProperty(anyHistory, fc.integer({ min: 1, max: 7 }), async (history, stride) => {
      const { owner, engine, preset } = opened;
      await owner.query(
        `drop schema public cascade; create schema public; grant usage on schema public to ${ROLES.join()}`,
      );
      for (const statement of [BASE, ...history]) await owner.query(statement).catch(() => {});
      engine.forgetStatements();
      const { catalog } = await loadCatalog(owner, {
        schemas: ["public"],
        extraSearchPath: [],
        loginRole: "authenticator",
      });
      const shared = { catalog, anonRole: "anon", limits: LIMITS };
      const fresh = await makeSchema(preset);
      const documents = documentsOf(fresh.schema);

      const early: [role: string, document: string, isAccepted: boolean][] = [];
      const built = await buildSchemaInSteps(preset, new AbortController().signal, (unfinished) => {
        const { schemaOf } = new EarlySchema({ schema: unfinished!, ...shared });
        // Some only, so that the build makes the rest.
        for (const role of ROLES)
          for (const [index, document] of documents.entries())
            if (index % stride === 0)
              early.push([role, document, isAccepted(() => runToCompletion(schemaOf(role).documents.read(document)))]);
      });
      expect(printSchema(built.schema)).toBe(printSchema(fresh.schema));

      const roles = new RoleSchemas({ ...built, ...shared });
      for (const role of ROLES) await roles.schemaOf(role);
      for (const [role, document, isEarly] of early) {
        const served = await roles.schemaOf(role);
        const isWhole = isAccepted(() => runToCompletion(served.documents.read(document)));
        if (isEarly) expect([role, document, isWhole]).toEqual([role, document, true]);
        counts.early += Number(isEarly);
        counts.whole += Number(isWhole);
      }
    }),
    { numRuns: propertyRuns(10) },
  );
  // It refuses the documents that it cannot decide, which are few.
  expect(counts.early).toBeGreaterThan(0.9 * counts.whole);
});

test("variables may have no fields that the role does not see", async () => {
  const { owner, engine, preset } = opened;
  await owner.query(`drop schema public cascade; create schema public; grant usage on schema public to ${ROLES.join()};
    ${BASE}; revoke all on public.shops from authenticated;
    grant select (id), insert (id, name) on public.shops to authenticated`);
  engine.forgetStatements();
  const { catalog } = await loadCatalog(owner, {
    schemas: ["public"],
    extraSearchPath: [],
    loginRole: "authenticator",
  });
  const given: boolean[] = [];
  await buildSchemaInSteps(preset, new AbortController().signal, (unfinished) => {
    const early = new EarlySchema({ schema: unfinished!, catalog, anonRole: "anon", limits: LIMITS });
    const { documents } = early.schemaOf("authenticated");
    const checked = runToCompletion(
      documents.read("mutation ($input: CreateShopInput!) { createShop(input: $input) { id } }"),
    );
    const operation = checked.operation(null);
    for (const input of [
      { id: 1, name: "a" },
      { id: 1, name: "a", margin: 1 },
      { id: 1, unknown: 1 },
    ])
      given.push(isAccepted(() => checked.checkVariables(operation, { input })));
  });
  expect(given).toEqual([true, false, false]);
});

function isAccepted(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if ((error as Error).name !== "Refusal") throw error;
    return false;
  }
}

/** Documents with each field, argument and input field of a schema, one at a time. */
function documentsOf(schema: GraphQLSchema): string[] {
  const roots = [["query", schema.getQueryType()] as const, ["mutation", schema.getMutationType()] as const];
  return roots.flatMap(([kind, root]) =>
    Object.values(root?.getFields() ?? {}).flatMap(({ name, args, type }) => {
      const required = args.filter(isRequiredArgument);
      const calls = [required, ...args.filter((arg) => !isRequiredArgument(arg)).map((arg) => [...required, arg])];
      const result = getNamedType(type);
      const selections = isObjectType(result) ? selectionsOf(result, 2) : [""];
      return [
        ...calls.flatMap((given) => argumentTexts(given).map((text) => `${kind} { ${name}${text} ${selections[0]} }`)),
        ...selections.map((selection) => `${kind} { ${name}${argumentTexts(required)[0]} ${selection} }`),
      ];
    }),
  );
}

function selectionsOf(type: GraphQLObjectType, depth: number): string[] {
  return Object.values(type.getFields()).flatMap((field) => {
    const result = getNamedType(field.type);
    if (field.args.some(isRequiredArgument)) return [];
    if (!isObjectType(result)) return [`{ ${field.name} }`];
    return depth === 0 ? [] : selectionsOf(result, depth - 1).map((selection) => `{ ${field.name} ${selection} }`);
  });
}

/** Returns one text for each field of the last argument, if it is an input. */
function argumentTexts(given: readonly GraphQLArgument[]): string[] {
  const last = given.at(-1);
  if (!last) return [""];
  const before = given.slice(0, -1).map(({ name, type }) => `${name}: ${valuesOf(type, 1)[0]}`);
  return valuesOf(last.type, 2).map((value) => `(${[...before, `${last.name}: ${value}`].join(", ")})`);
}

const LITERALS: Readonly<Record<string, string>> = { Int: "1", Boolean: "true" };

function valuesOf(wrapped: GraphQLInputType, depth: number): string[] {
  const type = getNamedType(wrapped);
  if (isLeafType(type)) return ["getValues" in type ? type.getValues()[0]!.name : (LITERALS[type.name] ?? '"1"')];
  if (!isInputObjectType(type)) return [];
  const fields = Object.values(type.getFields());
  const required = fields.filter(isRequiredInputField).map((field) => `${field.name}: ${valuesOf(field.type, 0)[0]}`);
  const optional = fields.filter((field) => !isRequiredInputField(field));
  return [
    `{ ${required.join(", ")} }`,
    ...(depth === 0 ? [] : optional).flatMap((field) =>
      valuesOf(field.type, depth - 1).map((value) => `{ ${[...required, `${field.name}: ${value}`].join(", ")} }`),
    ),
  ];
}
