import {
  buildClientSchema,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from "grafast/graphql";
import { authorizationOf, CALLERS, type CallerName } from "./callers.ts";
import type { ComparedRequest } from "./send-request.ts";

const SEED = 7;
const PER_FIELD = 10;
/** Inputs contain each other: deeper ones have only required fields. */
const INPUT_DEPTH = 3;

/** Operations over every field of the schema by every caller, and some by hand: documents and requests that are refused. */
export async function graphqlRequests(url: string): Promise<ComparedRequest[]> {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...authorizationOf("service") },
    body: JSON.stringify({ query: getIntrospectionQuery() }),
  });
  const { data } = (await response.json()) as { data: Parameters<typeof buildClientSchema>[0] };
  const operations = makeOperations(buildClientSchema(data));
  return [...byHand(), ...operations.map((query, index) => post({ query }, CALLERS[index % CALLERS.length]!))];
}

function makeOperations(schema: GraphQLSchema): string[] {
  const random = randomNumbers(SEED);
  const rootFields = (type: GraphQLObjectType, keyword: string) =>
    Object.values(type.getFields()).flatMap((field) =>
      Array.from({ length: PER_FIELD }, () => `${keyword} { ${writeField(field, 3, random)} }`),
    );
  return [...rootFields(schema.getQueryType()!, "query"), ...rootFields(schema.getMutationType()!, "mutation")];
}

type RandomNumber = (below: number) => number;

/** The same numbers for the same seed (mulberry32). */
function randomNumbers(seed: number): RandomNumber {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function writeField(field: GraphQLField<unknown, unknown>, depth: number, random: RandomNumber): string {
  const type = getNamedType(field.type);
  const written = `${field.name}${writeArguments(field.args, random)}`;
  if (!isObjectType(type)) return isLeafType(type) ? written : `${written} { __typename }`;
  const fields = Object.values(type.getFields()).filter(
    (inner) => isLeafType(getNamedType(inner.type)) || (depth > 0 && random(3) > 0),
  );
  const selected = fields.map((inner) => writeField(inner, depth - 1, random));
  return `${written} { ${["__typename", ...selected].join(" ")} }`;
}

function writeArguments(all: readonly GraphQLArgument[], random: RandomNumber): string {
  const given = all.filter(({ type }) => isNonNullType(type) || random(4) === 0);
  if (given.length === 0) return "";
  return `(${given.map(({ name, type }) => `${name}: ${writeValue(name, type, random)}`).join(", ")})`;
}

function writeValue(name: string, type: GraphQLInputType, random: RandomNumber, depth = INPUT_DEPTH): string {
  if (isNonNullType(type)) return writeValue(name, type.ofType, random, depth);
  if (random(25) === 0) return "null";
  if (isListType(type)) {
    return `[${Array.from({ length: random(3) }, () => writeValue(name, type.ofType, random, depth)).join(", ")}]`;
  }
  if (isEnumType(type)) return pick(type.getValues(), random).name;
  if (isInputObjectType(type)) {
    const given = Object.values(type.getFields()).filter(
      (field) => isNonNullType(field.type) || (depth > 0 && random(3) === 0),
    );
    const fields = given.map((field) => `${field.name}: ${writeValue(field.name, field.type, random, depth - 1)}`);
    return `{ ${fields.join(", ")} }`;
  }
  switch (type.name) {
    case "Int":
      return String(random(8));
    case "Float":
      return `${random(8)}.5`;
    case "Boolean":
      return pick(["true", "false"], random);
    case "ID":
    case "BigInt":
      return `"${1 + random(13)}"`;
    case "BigFloat":
      return `"${random(9)}.25"`;
    case "Time":
    case "Datetime":
      return `"2024-03-${10 + random(19)}T10:00:00Z"`;
    case "Date":
      return `"2024-06-0${1 + random(8)}"`;
    case "JSON":
      return pick(['{ a: [1, 2.5, "x"] }', '"text"', "7"], random);
    case "UUID":
      return '"5c0b2c4e-6d3f-4d5e-8a57-2b6f0d3c9a11"';
    default:
      return writeText(name, random);
  }
}

function writeText(name: string, random: RandomNumber): string {
  if (/email/i.test(name)) return `"person${random(40)}@example.org"`;
  return pick(['"title"', '"A title of some length"', '"content 3"', '"c3"', '"tag1"', '"en"', '""', '"üñí"'], random);
}

function pick<Item>(items: readonly Item[], random: RandomNumber): Item {
  return items[random(items.length)]!;
}

function post(body: unknown, caller: CallerName = "anon", headers: Record<string, string> = {}): ComparedRequest {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    method: "POST",
    path: "/graphql",
    headers: { "Content-Type": "application/json", ...authorizationOf(caller), ...headers },
    body: Buffer.from(text).toString("base64"),
  };
}

function get(query: string, headers: Record<string, string> = {}): ComparedRequest {
  return { method: "GET", path: `/graphql?${query}`, headers, body: null };
}

function byHand(): ComparedRequest[] {
  const documents = [
    "{",
    "",
    "{ nothing }",
    "{ __typename }",
    "{ users { nothing } }",
    "{ users { id ",
    "{ user { id } }",
    '{ user(id: "x") { id } }',
    "{ user(id: 1) { id } }",
    "{ user(id: 999) { id } }",
    "{ me { id name } }",
    "query A { __typename } query B { __typename }",
    "query ($id: ID!) { user(id: $id) { id } }",
    "subscription { onArticleCreated { id } }",
    "{ a: users(limit: 1) { id } b: users(limit: 2, offset: 1) { ...f } } fragment f on User { id name }",
    "query ($yes: Boolean = true) { users(limit: 1) { id @include(if: $yes) name @skip(if: $yes) } }",
    "{ articles(first: 2, last: 2) { totalCount } }",
    "{ articles(first: -1) { totalCount } }",
    '{ articles(first: 2, after: "bogus") { edges { cursor } } }',
    "{ articles(first: 3) { totalCount edges { cursor node { id title author { name } } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }",
    '{ search(keyword: "title") { id title } }',
    "{ __schema { queryType { name } } }",
    '{ __type(name: "Article") { fields { name } } }',
    `{ ${Array.from({ length: 40 }, (_, index) => `a${index}: users(limit: 1) { id }`).join(" ")} }`,
    `{ users { articles { author { articles { author { articles { author { articles { id } } } } } } } } }`,
    'mutation { createArticle(input: { title: "short", content: "c" }) { success message errors { field message } } }',
    'mutation { createUser(input: { name: "", email: "none" }) { id } }',
    'mutation { a: createUser(input: { name: "One", email: "one@example.org" }) { name } b: createUser(input: { name: "One", email: "one@example.org" }) { name } }',
    "mutation { deleteArticle(id: 1) }",
    "mutation { publishArticle(id: 999) { id } }",
  ];
  return [
    ...documents.flatMap((query) => [post({ query }), post({ query }, "user 1"), post({ query }, "admin")]),
    ...documents.map((query) => get(`query=${encodeURIComponent(query)}`)),
    ...documents.map((query) => post({ query }, "user 2", { Accept: "application/graphql-response+json" })),
    post({ query: "query ($id: ID!) { user(id: $id) { id name } }", variables: { id: 3 } }),
    post({ query: "query ($id: ID!) { user(id: $id) { id name } }", variables: { id: null } }),
    post({ query: "query ($id: ID!) { user(id: $id) { id name } }", variables: [] }),
    post({ query: "query A { __typename } query B { users(limit: 1) { id } }", operationName: "B" }),
    post({ query: "query A { __typename } query B { __typename }", operationName: "C" }),
    post({ query: 7 }),
    post([{ query: "{ __typename }" }]),
    post("{"),
    post("null"),
    post({ query: "{ __typename }" }, "anon", { "Content-Type": "text/plain" }),
    post({ query: "{ __typename }" }, "anon", { Accept: "text/html" }),
    post({ query: "{ __typename }" }, "anon", { Accept: "application/xml" }),
    post({ query: "{ __typename }" }, "anon", { Authorization: "Bearer nonsense" }),
    post({ extensions: { persistedQuery: { version: 1, sha256Hash: "00" } } }),
    get("query={__typename}"),
    get("query=mutation{deleteArticle(id:1)}"),
    get("query={__typename}&variables={"),
    get("nothing"),
  ];
}
