import type { Load } from "../comparison/load.ts";
import { signClaims } from "../comparison/sign-claims.ts";
import { ARTICLES, CALLER } from "./content.ts";
import type { Server, Shape } from "./servers.ts";

export type Work = {
  readonly name: string;
  readonly document: Readonly<Record<Shape, string>>;
  /** The variables, used in turn; their JSON texts have the same length. */
  readonly variables: readonly object[];
};

export const CREATE = "createArticle";
const PAGE_INFO = "hasNextPage hasPreviousPage startCursor endCursor";
const RESULT = "success message errors { field message }";

/** The works. Fields with other names are renamed, so that the responses are the same. */
export const WORKS: readonly Work[] = [
  {
    name: "10 articles with authors, page info and total count",
    document: {
      contract: `query List($first: Int) { articles(first: $first) { edges { cursor node { id title status tags createdAt
        author { id name } } } pageInfo { ${PAGE_INFO} } totalCount } }`,
      amber: `query List($first: Int) { articles: allArticles(first: $first, orderBy: [CREATED_AT_DESC, ROW_ID_DESC]) {
        edges { cursor node { id: rowId title status tags createdAt author: userByAuthorId { id: rowId name } } }
        pageInfo { ${PAGE_INFO} } totalCount } }`,
    },
    variables: [{ first: 10 }],
  },
  {
    name: "one article with its author",
    document: {
      contract: `query One($id: ID!) { article(id: $id) { id title content status tags createdAt updatedAt
        author { id name email } } }`,
      amber: `query One($id: BigInt!) { article: articleByRowId(rowId: $id) { id: rowId title content status tags
        createdAt updatedAt author: userByAuthorId { id: rowId name email } } }`,
    },
    variables: Array.from({ length: ARTICLES / 2 }, (_, index) => ({ id: String(ARTICLES / 2 + index) })),
  },
  {
    name: CREATE,
    document: {
      contract: `mutation Create($input: CreateArticleInput!) { createArticle(input: $input) { ${RESULT}
        article { id title status tags createdAt author { id name } } } }`,
      amber: `mutation Create($input: CreateArticleInput!) { createArticle(input: $input) { result { ${RESULT}
        article { id: rowId title status tags createdAt author: userByAuthorId { id: rowId name } } } } }`,
    },
    variables: [{ input: { title: "A title of some words", content: "content ".repeat(25), tags: ["one", "two"] } }],
  },
];

export const TOKEN = signClaims({ sub: CALLER, name: "User 1", role: "authenticated" });
const CONNECTIONS = 16;

/** Returns the work as a load for a server. */
export function loadOf(work: Work, server: Server, seconds: number): Load {
  const bodies = bodiesOf(work, server);
  const head = [
    `POST ${server.base.pathname} HTTP/1.1`,
    `Host: ${server.base.host}`,
    `Authorization: Bearer ${TOKEN}`,
    "Accept: application/json",
    "Content-Type: application/json",
    `Content-Length: ${bodies[0]!.length}`,
    "\r\n",
  ];
  return {
    port: Number(server.base.port),
    connections: CONNECTIONS,
    seconds,
    request: ["", head.join("\r\n"), ""],
    values: null,
    // The load generator inserts one of these into each request, whatever their content.
    tokens: bodies,
  };
}

/**
 * Returns one response of a server: under load nobody reads the responses, and GraphQL returns 200 for failures too. Omits
 * values that differ per server or per request: cursors, and the id and the time of created rows.
 */
export async function answerOf(work: Work, server: Server): Promise<string> {
  const headers = { Authorization: `Bearer ${TOKEN}`, Accept: "application/json", "Content-Type": "application/json" };
  const response = await fetch(server.base, { method: "POST", headers, body: bodiesOf(work, server)[0]! });
  const text = await response.text();
  const { data, errors } = JSON.parse(text);
  if (errors || !data) throw new Error(`${server.name} does not answer "${work.name}": ${text}`);
  const own = /cursor$/i;
  return JSON.stringify(data.createArticle?.result ?? Object.values(data)[0], (name, value) => {
    if (own.test(name) || (data.createArticle && name === "id")) return "…";
    if (name === "createdAt") return data.createArticle ? "…" : Date.parse(value);
    return Array.isArray(value) && value.length === 0 ? null : value;
  });
}

function bodiesOf({ document, variables }: Work, { shape }: Server): string[] {
  const query = document[shape].replaceAll(/\s+/g, " ");
  return variables.map((variables) => JSON.stringify({ query, variables }));
}
