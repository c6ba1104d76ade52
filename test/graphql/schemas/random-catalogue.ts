import fc from "fast-check";

/** SQL that makes a schema `public` anew, of objects and smart comments as people may have them; each statement may fail. */
export type RandomCatalogue = readonly string[];

const NAMES = [
  "a",
  "b",
  "thing",
  "things",
  "Order Lines",
  "order_lines",
  "user",
  "query",
  "node",
  "_1",
  "mutation",
  "é",
];
const name = fc.constantFrom(...NAMES).map((text) => `"${text}"`);

const BASE_TYPES = [
  "int",
  "bigint",
  "text",
  "boolean",
  "numeric",
  "float8",
  "uuid",
  "json",
  "jsonb",
  "bytea",
  "timestamptz",
  "timestamp",
  "date",
  "time",
  "timetz",
  "interval",
  "tsvector",
  "tsquery",
  "inet",
  "cidr",
  "macaddr",
  "money",
  "point",
  "line",
  "path",
  "polygon",
  "box",
  "circle",
  "lseg",
  "bit(3)",
  "varbit",
  "xml",
  "oid",
  "regclass",
  "pg_lsn",
  "xid",
  "name",
  '"char"',
  "int4range",
  "tstzrange",
  "int4multirange",
  "varchar(9)",
  "char(2)",
  "jsonpath",
  "hstore",
  "citext",
  "ltree",
  "void",
  "record",
  "anyelement",
  "anyarray",
  "trigger",
  "internal",
  "cstring",
]; // prettier-ignore // prettier-ignore
const OWN_TYPES = [
  "public.mood",
  "public.none",
  "public.pair",
  "public.positive",
  "public.pairs",
  "public.moods",
  "public.span",
];
const baseType = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...BASE_TYPES) },
  { weight: 2, arbitrary: fc.constantFrom(...OWN_TYPES) },
  { weight: 3, arbitrary: name.map((text) => `public.${text}`) },
);
const type = fc.tuple(baseType, fc.constantFrom("", "", "", "[]", "[][]")).map(([base, array]) => base + array);

const LINES = [
  "@behavior +list +connection",
  "@behavior -*",
  "@behavior +*",
  "@behavior nonsense",
  "@behavior",
  "@behavior +insert -select",
  "@behavior +queryField +mutationField +typeField",
  "@behavior -query:*:*",
  "@behavior +connection -list",
  "@behavior single",
  "@behavior +nodeId:insert",
  "@behavior -attribute:select",
  "@behavior +resource:insert +resource:update +resource:delete",
  "@omit",
  "@omit create,update",
  "@name another",
  "@name",
  "@name a b",
  "@name __typename",
  "@name 1",
  "@name query",
  "@name input",
  "@arg0variant nodeId",
  "@arg0variant patch",
  "@arg0variant base",
  "@arg1variant nodeId",
  "@arg0variant nonsense",
  "@arg0modifier 5",
  "@ref friends via:(id)->things(id)",
  "@ref friend singular via:(id)->a(id)",
  "@ref",
  "@ref x",
  "@refVia friends via:nothing",
  "@ref friends to:things plural",
  "@enum",
  "@enumName Colours",
  "@enumDescription note",
  "@interface mode:single type:kind",
  "@interface mode:relational type:kind",
  "@interface mode:union",
  "@interface nonsense",
  "@type A references:a",
  "@implements Thing",
  "@unionMember Things",
  "@unique id",
  "@unique id,nothing",
  "@unique nothing",
  "@primaryKey id",
  "@primaryKey nothing",
  "@primaryKey",
  "@foreignKey (id) references a (id)",
  "@foreignKey (id) references nothing (id)",
  "@foreignKey nonsense",
  "@foreignKey (nothing) references a",
  "@notNull",
  "@nullable",
  "@notNullItems",
  "@filterable",
  "@filter",
  "@list",
  "@order id",
  "@order nothing",
  "@order id desc, nothing",
  "@order",
  "@subscription onThing on:insert",
  "@subscription onThing on:update by:id?",
  "@subscription onThing on:nothing",
  "@subscription onThing on:insert by:nothing",
  "@subscription",
  "@subscription a b c",
  "@deprecated",
  "@deprecated Use x.",
  "@deprecatedArgument limit Use first.",
  "@deprecatedValue x Use y.",
  "@fieldName parent",
  "@fieldName",
  "@fieldName a b",
  "@foreignFieldName kids",
  "@foreignSingleFieldName kid",
  "@foreignSimpleFieldName kids",
  "@simpleCollections both",
  "@simpleCollections only",
  "@sortable",
  "@resultFieldName out",
  "@resultFieldName",
  "@notation nonsense",
  "@since 2",
  "@root user",
  "@rowByUniqueName x",
  "@hasDefault",
  "@forwardRelationName x",
  "@backwardRelationName y",
  "@polymorphic",
  "@localTableType X",
  "@spec isTypeOf",
  "@isIndexed false",
  "@encrypt",
]; // prettier-ignore // prettier-ignore
const comment = fc
  .array(fc.constantFrom(...LINES), { minLength: 1, maxLength: 3 })
  .map((lines) => `e'${lines.join("\\n").replaceAll("'", "''")}\\nWhat it is.'`);

const COLUMN_NAMES = [
  "id",
  "kind",
  "note",
  "other_id",
  "input",
  "Query",
  "a b",
  "_",
  "first",
  "nodeId",
  "totalCount",
  "__x",
];
const column = fc
  .tuple(fc.constantFrom(...COLUMN_NAMES), type, fc.constantFrom("", "", " not null", " unique"))
  .map(([text, of, more]) => ({ name: `"${text}"`, sql: `"${text}" ${of}${more}` }));

const table = fc
  .record({
    name,
    columns: fc.uniqueArray(column, { selector: (each) => each.name, maxLength: 5 }),
    hasKey: fc.boolean(),
    reference: fc.option(name, { freq: 2, nil: null }),
    grants: fc.constantFrom("select", "select, insert, update, delete", "insert", "select (id)", "all", "update"),
    comments: fc.array(fc.tuple(fc.constantFrom("table", "id", "kind", "note", "pkey", "fkey"), comment), {
      maxLength: 2,
    }),
  })
  .map(({ name: own, columns, hasKey, reference, grants, comments }) => {
    const parts = [
      `id int${hasKey ? " constraint pkey primary key" : ""}`,
      ...columns.filter((each) => each.name !== '"id"').map((each) => each.sql),
      ...(reference ? [`ref int constraint fkey references public.${reference} (id)`] : []),
    ];
    return [
      `create table public.${own} (${parts.join(", ")})`,
      `grant ${grants} on public.${own} to anon`,
      ...comments.map(([on, text]) =>
        on === "table"
          ? `comment on table public.${own} is ${text}`
          : on.endsWith("key")
            ? `comment on constraint ${on} on public.${own} is ${text}`
            : `comment on column public.${own}.${on} is ${text}`,
      ),
    ];
  });

const view = fc
  .tuple(name, name, comment)
  .map(([own, of, text]) => [
    `create view public.${own} as select * from public.${of}`,
    `grant select on public.${own} to anon`,
    `comment on view public.${own} is ${text}`,
  ]);

const argument = fc
  .tuple(
    fc.constantFrom("", "", "", "out ", "inout ", "variadic "),
    fc.constantFrom("", "x ", "id ", '"a b" ', "input ", "first "),
    type,
    fc.constantFrom("", "", "", " default null"),
  )
  .map((parts) => parts.join(""));

const routine = fc
  .record({
    kind: fc.constantFrom("function", "function", "function", "function", "procedure"),
    name,
    arguments: fc.array(argument, { maxLength: 3 }),
    set: fc.constantFrom("", "", "setof "),
    result: fc.option(type, { freq: 5, nil: null }),
    volatility: fc.constantFrom("volatile", "stable", "immutable strict"),
    isGranted: fc.boolean(),
    comment: fc.option(comment, { nil: null }),
  })
  .map(({ kind, name: own, arguments: all, set, result, volatility, isGranted, comment: text }) => {
    const isProcedure = kind === "procedure";
    const returns = isProcedure ? "" : result ? `returns ${set}${result}` : "returns table (x int, y text)";
    const head = `${kind} public.${own}`;
    return [
      `create ${head}(${all.join(", ")}) ${returns} language plpgsql ${isProcedure ? "" : volatility} as 'begin end'`,
      ...(isGranted ? [] : [`revoke execute on ${kind} public.${own} from public`]),
      ...(text ? [`comment on ${head} is ${text}`] : []),
    ];
  });

const TYPES = [
  "create extension if not exists hstore schema extensions",
  "create extension if not exists citext schema extensions",
  "create extension if not exists ltree schema extensions",
  "create type public.mood as enum ('good', 'so so', '')",
  "create type public.none as enum ()",
  "create type public.pair as (x int, mood public.mood)",
  "create domain public.positive as int check (value > 0)",
  "create domain public.pairs as public.pair[]",
  "create domain public.moods as public.mood[] not null",
  "create type public.span as range (subtype = float8)",
];
const typeComment = fc
  .tuple(
    fc.constantFrom(
      "type public.mood",
      "type public.none",
      "type public.pair",
      "domain public.positive",
      "column public.pair.x",
      "schema public",
    ),
    comment,
  )
  .map(([on, text]) => [`comment on ${on} is ${text}`]);

/** Objects that are always there, and must be in every schema. */
export const CONTROLS = [
  "create table public.controls (id int primary key, note text)",
  "grant select, insert on public.controls to anon",
  "create function public.control(x int) returns int language sql stable as 'select x'",
  "grant execute on function public.control(int) to anon",
];

export const randomCatalogue: fc.Arbitrary<RandomCatalogue> = fc
  .record({
    tables: fc.array(table, { minLength: 1, maxLength: 5 }),
    views: fc.array(view, { maxLength: 2 }),
    routines: fc.array(routine, { maxLength: 6 }),
    typeComments: fc.array(typeComment, { maxLength: 2 }),
  })
  .map(({ tables, views, routines, typeComments }) => [
    "drop schema if exists public cascade",
    "create schema public",
    "grant usage on schema public to anon",
    ...TYPES,
    ...CONTROLS,
    ...[...tables, ...views, ...routines, ...typeComments].flat(),
  ]);
