import { readFile } from "node:fs/promises";
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLNamedType,
  isEnumType,
  isInputObjectType,
  isObjectType,
} from "grafast/graphql";
import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

/** Objects with names that the content service has already, in one kind of object or another. */
const ADDED = `
  create table public.article_statuses (id int primary key, name text);
  create table public.mutation_results (id int primary key, article_id bigint references public.articles);
  create table public.field_errors (id int primary key);
  create table public.article (id int primary key);
  create table public."Articles" (id int primary key, author_id bigint references public.users);
  create table public.avatars (user_id bigint primary key references public.users, article_id bigint references public.articles);
  create table public.age (id int primary key, user_id bigint unique references public.users);
  create table public.comment_ (id int primary key, article_id bigint references public.articles);
  alter table public.articles add editor_id bigint references public.users;
  create table public."user" (id int primary key);
  create table public.times (id int primary key);
  create table public.article_filters (id int primary key);
  create table public.create_articles (id int primary key);
  create table public.article_edges (id int primary key);
  create table public.page_infos (id int primary key);
  create type public.articles_status as enum ('on', 'off');
  create type public.comment as enum ('yes', 'no');
  create type public."User" as (name text);
  create type public.page_info as enum ('a');
  create type public.article_filter_input as enum ('a');
  create type public.create_user_input as (name text);
  create domain public."time" as text;
  create table public.users_of_these (
    id int primary key, a public.articles_status, b public.comment, c public."User", d public.page_info,
    e public.article_filter_input, f public.create_user_input, g public."time"
  );
  grant select, insert, update, delete on all tables in schema public to authenticated`;

const generated = useGeneratedSchema({ sql: ADDED });

/** `Article.title(language: String): String!`, `ArticleStatus.DRAFT`, `scalar Time` */
function partsOf(type: GraphQLNamedType): string[] {
  if (isEnumType(type)) return type.getValues().map(({ name }) => `enum ${type}.${name}`);
  if (!isObjectType(type) && !isInputObjectType(type)) return [`scalar ${type}`];
  return Object.values(type.getFields()).map((field) => {
    const args =
      "args" in field ? field.args.map((argument: GraphQLArgument) => `${argument.name}: ${argument.type}`) : [];
    return `${type}.${field.name}(${args.sort().join(", ")}): ${field.type}`;
  });
}

test("existing objects keep their GraphQL names when others are added", async () => {
  const before = buildSchema(await readFile("plugins/schema.graphql", "utf8"));
  const there = new Set(Object.values(generated.schema.getTypeMap()).flatMap(partsOf));
  const lost = Object.values(before.getTypeMap())
    .flatMap(partsOf)
    .filter((part) => !there.has(part));
  expect(lost).toEqual([]);
});

test("a table keeps its name when one is created whose name is the plural, or shorter, or unquoted", async () => {
  const own = `
    create table public.goose (id int primary key);
    create table public."Cloud Edges" (id int primary key);
    grant select on public.goose, public."Cloud Edges" to anon`;
  const others = `
    create table public.geese (id int primary key);
    create table public.clouds (id int primary key);
    create table public.cloud_edges (id int primary key);
    grant select on public.geese, public.clouds, public.cloud_edges to anon`;
  await generated.owner.query(`${own}; insert into public.goose values (7)`);
  await generated.renew();
  const before = Object.keys(generated.schema.getTypeMap());
  await generated.owner.query(others);
  await generated.renew();
  const after = Object.keys(generated.schema.getTypeMap());
  expect(after).toEqual(expect.arrayContaining([...before, "GooseRecord", "CloudRecord", "CloudEdgeRecord"]));
  expect(await generated.read(anonymous, "{ goose(id: 7) { id } gooseRecord(id: 7) { id } }")).toEqual({
    goose: { id: "7" },
    gooseRecord: null,
  });
});
