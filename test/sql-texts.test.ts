import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY, serviceFiles } from "./repository.ts";
import { type SqlText, sqlTexts } from "./sql-texts.ts";

/** `from users as account`, `join ${table} t`, `from (select …) as recent`: not functions, whose alias is a value. */
const RELATION_ALIAS =
  /\b(?:from|join|update|into)\s+(?:only\s+)?(?:\$\{[^{}]*\}|"?[\w$]+"?(?:\."?[\w$]+"?)*|\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))\s+(?:as\s+)?("?[a-z_]\w*"?|\$\{\w+\})(?![\w.]|\s*\()/gi;
const KEYWORD =
  /^(select|where|set|values|on|order|group|limit|left|right|inner|cross|join|full|union|natural|as|using|returning|default|for|with|from|loop|end|then|is|in|not|and|or|into)$/i;

/** Only our migrations and Postgres add columns to these. */
const OWN_RELATION = /^\w+\s+(only\s+)?((auth|private|api)\.|(pg_catalog\.)?pg_)/i;

/** The aliases of relations in a text, and where one of them stands for its row as a value: as an argument, before a cast, in parentheses. */
function bareRows({ text }: Pick<SqlText, "text">): string[] {
  const relations = [...text.matchAll(RELATION_ALIAS)].filter(
    ([relation, alias]) => !KEYWORD.test(alias!) && !OWN_RELATION.test(relation),
  );
  const aliases = new Set(relations.map(([, alias]) => alias!));
  return [...aliases].flatMap((alias) => {
    const name = alias.replaceAll(/[$(){}.]/g, "\\$&");
    const row = new RegExp(
      String.raw`\w\(\s*(?:distinct\s+)?${name}(?=\s*[,)]|\s+order by)|(?<![\w."])${name}\s*::|\(${name}\)\s*(?:\.|::)|(?<![\w."])${name}\s+is\s+(?:not\s+)?(?:null|distinct)`,
      "gi",
    );
    return [...text.matchAll(row)].map(([found]) => found);
  });
}

test("finds an alias that stands for its row, which a column of that name would shadow", () => {
  const shadowed = (text: string) => bareRows({ text });
  const dynamic = (text: string) => text.replaceAll("{", () => "$\u007b");
  expect(shadowed(dynamic("select t::text as row from only {table} as t"))).toEqual(["t::"]);
  expect(shadowed("select to_jsonb(t) from public.notes t where true")).toEqual(["b(t"]);
  expect(shadowed(dynamic("select (t).* from {table} as t"))).toEqual(["(t)."]);
  expect(shadowed(dynamic("select count(distinct t) from (select * from {table}) as t"))).toEqual(["t(distinct t"]);
  expect(shadowed(dynamic("select 1 from {table} as {alias} where {alias} is not null"))).toEqual([
    dynamic("{alias} is not null"),
  ]);
  expect(shadowed(dynamic("select (t.*)::text, to_jsonb(t.*), count(t.*), t.id from {table} as t"))).toEqual([]);
  expect(shadowed("select name::text from pg_catalog.unnest($1::text[]) as name")).toEqual([]);
});

test("the SQL of the sources writes a whole row as `alias.*`", () => {
  const texts = sqlTexts();
  expect(texts.length).toBeGreaterThan(500);
  expect(texts.flatMap((text) => bareRows(text).map((found) => `${text.file}:${text.line} ${found}`))).toEqual([]);
});

test("the SQL of the migrations' functions writes a whole row as `alias.*`", () => {
  const schema = readFileSync(join(REPOSITORY, "db/schema.sql"), "utf8");
  const bodies = schema.split(/^-- (?=function|procedure)/m).slice(1);
  expect(bodies.length).toBeGreaterThan(100);
  const offences = bodies.flatMap((text) => bareRows({ text }).map((found) => `${text.split("\n")[0]} ${found}`));
  expect(offences).toEqual([]);
});

/** Their statements run with a search path on which nothing but Postgres's objects is: `setPortableFormats`, the catalogue's snapshot, `readRows`, `withEmptyPath`, `planChange`. */
const ON_SAFE_PATH =
  /^(cluster\/archive\/(?!scheduled)|catalog\/(definitions\/|(constraints|locked-relations|roles|routines|schemas|shown-rows|tables|types|view-columns)\.ts)|migrate\/(dump-schema|object-names|object-settings|planned-table|reverse-migration)\.ts)/;

/** Words that are not looked up on the search path. */
const SYNTAX =
  /^(all|any|array|as|bit|cast|char|check|coalesce|collation|exists|extract|filter|greatest|grouping|in|interval|key|least|nullif|numeric|on|operator|over|overlay|position|row|substring|table|time|timestamp|trim|using|values|varchar|with)$/;

/** Replaces each interpolation by a sign. */
function withoutInterpolations(text: string): string {
  const outer = text.replaceAll(/\$\{[^{}]*\}/g, "§");
  return outer === text ? text : withoutInterpolations(outer);
}

/** Functions and relations of Postgres that a function or temporary table of a user could replace: those without a schema. */
function unqualifiedNames({ text }: Pick<SqlText, "text">): string[] {
  const sql = withoutInterpolations(text);
  // With several arguments, `unnest` is syntax too, which exists without a schema only.
  const calls = [
    ...sql.matchAll(/(?<=[\s(,]|^|::|\|\|)(?!unnest\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*,)([a-z][a-z_0-9]+)\(/g),
  ].map(([, name]) => name!);
  const relations = [...sql.matchAll(/\b(?:from|join)\s+(pg_(?!catalog\b)\w+)\b(?![.(])/g)].map(([, name]) => name!);
  const created = [...sql.matchAll(/\b(?:as|with|recursive|table|into)\s+(\w+)\s?\(/g)].map(([, name]) => name!);
  return [...calls.filter((name) => !SYNTAX.test(name) && !created.includes(name)), ...relations];
}

test("finds functions and relations of Postgres without their schema", () => {
  const dynamic = (text: string) => text.replaceAll("{", () => "$\u007b");
  expect(unqualifiedNames({ text: "select lower($1), pg_catalog.upper(x), coalesce(a, b) from pg_class" })).toEqual([
    "lower",
    "pg_class",
  ]);
  expect(
    unqualifiedNames({ text: dynamic("select {join(a, {b})} from pg_catalog.unnest($1::text[]) as u(i)") }),
  ).toEqual([]);
});

test("the SQL of the sources names functions and relations of Postgres with their schema", () => {
  const texts = sqlTexts().filter(({ file }) => !ON_SAFE_PATH.test(file));
  const offences = texts.flatMap((text) => unqualifiedNames(text).map((name) => `${text.file}:${text.line} ${name}`));
  expect(offences).toEqual([]);
});

/** Types that are words of the grammar: no search path is looked at for them. `json` is one since Postgres 17 only. */
const GRAMMAR_TYPE =
  /^(int|integer|smallint|bigint|real|float|double|numeric|decimal|boolean|bit|char|character|varchar|interval|time|timestamp)$/;

/** Casts to types of Postgres without a schema, which a domain of a temporary schema replaces: that one comes first on every search path. */
function unqualifiedTypes({ text }: Pick<SqlText, "text">): string[] {
  // Regular expressions match the output of Postgres, which has no schema.
  if (text.includes("(?")) return [];
  const casts = text.matchAll(/(?<=[\w\s)}\]'"*])::\s*([a-z_]\w*)(?![\w.])/g);
  const typed = text.matchAll(/(?<![\w.])(jsonb?|text|uuid|timestamptz|date|bytea|regclass|regtype) '/g);
  const names = [...casts, ...typed].map(([, name]) => name!);
  const looked = [...text.matchAll(/'([a-z_]\w*)'::pg_catalog\.reg(?:class|type|proc)\b/g)].map(([found]) => found);
  return [...names.filter((name) => !GRAMMAR_TYPE.test(name)), ...looked];
}

test("finds types and names of relations of Postgres without their schema", () => {
  expect(
    unqualifiedTypes({
      text: "select $1::text, x::pg_catalog.text, y::bigint, z::double precision, timestamptz '2026-01-01', 'pg_class'::pg_catalog.regclass, 'pg_catalog.pg_class'::pg_catalog.regclass, w::auth.role",
    }),
  ).toEqual(["text", "timestamptz", "'pg_class'::pg_catalog.regclass"]);
});

test("the SQL of the sources names types of Postgres with their schema", () => {
  const texts = sqlTexts().filter(({ file }) => !ON_SAFE_PATH.test(file));
  const offences = texts.flatMap((text) => unqualifiedTypes(text).map((name) => `${text.file}:${text.line} ${name}`));
  expect(offences).toEqual([]);
});

/** An operator between two values whose types are a user's: `operatorIn` and `operatorOf` choose it by the type. */
const FIXED_OPERATOR =
  /\} (?:=|<>|<=?|>=?|@>|<@|&&|like|ilike|~\*?|is (?:not )?distinct from) (?:any \()?\$\{(?!sql\.literal)/;
/** An operator beside a literal, as in `name = 'literal'`: if a search path names `pg_catalog` last, an operator of a user is found first. */
const LITERAL_OPERATOR = /[\w)§"] (?:=|<>|!=|<=?|>=?|@>|<@|&&|~\*?|like|ilike|\+|-|\|\|) (?:any \()?(?:'|\d)/;
/** Assignments, numbers of rows, and types whose operators are on the search path. */
const OF_KNOWN_TYPES = /const (?:set|assignments|isLinked) =|operatorSchema === null/;

function fixedOperators(source: string): string[] {
  return source.split("\n").filter((line) => FIXED_OPERATOR.test(line) && !OF_KNOWN_TYPES.test(line));
}

function operatorsBesideLiterals({ text }: Pick<SqlText, "text">): string[] {
  return withoutInterpolations(text)
    .split("\n")
    .filter((line) => LITERAL_OPERATOR.test(line));
}

test("finds an operator that is written between two values", () => {
  const dynamic = (text: string) => text.replaceAll("{", () => "$\u007b");
  expect(fixedOperators(dynamic("sql`{left} = {right}`"))).toHaveLength(1);
  expect(fixedOperators(dynamic("sql`{column} is distinct from {value}`"))).toHaveLength(1);
  expect(fixedOperators(dynamic("sql`{left} {operatorOf(codec, name)} {right}`"))).toEqual([]);
});

test("finds an operator that is written beside a literal", () => {
  const found = (text: string) => operatorsBesideLiterals({ text });
  const beside = ["select from t where name = 'literal'", "select count(*) <> 0", "select (a)::int + 1"];
  expect(beside.flatMap(found)).toEqual(beside);
  expect(found("select from t where name operator(pg_catalog.=) 'literal' limit 1 offset 2")).toEqual([]);
});

/** Files whose SQL runs in the sessions of requests, with the search path of the database and of the role. */
const OF_REQUESTS = /^(planner|plugins|graphql\/compile)\//;

test("the SQL of requests names the operators beside literals with their schema", () => {
  const texts = sqlTexts().filter(({ file }) => OF_REQUESTS.test(file));
  expect(texts.length).toBeGreaterThan(100);
  const offences = texts.flatMap((text) =>
    operatorsBesideLiterals(text).map((line) => `${text.file}:${text.line} ${line.trim()}`),
  );
  expect(offences).toEqual([]);
});

test("the operators between values of requests are chosen by the values' type", () => {
  const files = serviceFiles().filter((file) => OF_REQUESTS.test(file));
  expect(files.length).toBeGreaterThan(60);
  const offences = files.flatMap((file) =>
    fixedOperators(readFileSync(join(REPOSITORY, file), "utf8")).map((line) => `${file}: ${line.trim()}`),
  );
  expect(offences).toEqual([]);
});
