// The code that a competent engineer writes with Apollo Server, DataLoader and pg: prepared statements, a pool, one
// transaction per request with the caller's role and claims set for the policies, one statement for all authors of a
// list, and nothing read that was not asked for.

import { createSecretKey } from "node:crypto";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import DataLoader from "dataloader";
import { GraphQLError, GraphQLScalarType } from "graphql";
import jwt from "jsonwebtoken";
import pg from "pg";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;
const secret = createSecretKey(Buffer.from(JWT_SECRET));
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL_SIZE) });

const typeDefs = `
  scalar Time
  enum ArticleStatus { DRAFT PUBLISHED ARCHIVED }
  type User { id: ID! name: String! email: String! age: Int createdAt: Time! updatedAt: Time! }
  type Article {
    id: ID! title: String! content: String! status: ArticleStatus! author: User! tags: [String!]!
    createdAt: Time! updatedAt: Time
  }
  type ArticleConnection { edges: [ArticleEdge!]! pageInfo: PageInfo! totalCount: Int! }
  type ArticleEdge { node: Article! cursor: String! }
  type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }
  input CreateArticleInput { title: String! content: String! tags: [String!] status: ArticleStatus = DRAFT }
  type MutationResult { success: Boolean! message: String article: Article errors: [FieldError!] }
  type FieldError { field: String! message: String! }
  type Query {
    article(id: ID!): Article
    articles(first: Int = 10, after: String, status: ArticleStatus): ArticleConnection!
  }
  type Mutation { createArticle(input: CreateArticleInput!): MutationResult! }
`;

/** The caller's transaction, begun when the first resolver needs it. */
class Session {
  #claims;
  #client = null;

  constructor(authorization) {
    this.#claims = authorization
      ? jwt.verify(authorization.slice("Bearer ".length), secret, { algorithms: ["HS256"] })
      : { role: "anon" };
  }

  get userId() {
    return this.#claims.sub ?? null;
  }

  async query(name, text, values) {
    this.#client ??= this.#begin();
    const client = await this.#client;
    return (await client.query({ name, text, values })).rows;
  }

  async end(command) {
    if (!this.#client) return;
    const client = await this.#client;
    this.#client = null;
    try {
      await client.query(command);
    } finally {
      client.release();
    }
  }

  async #begin() {
    const client = await pool.connect();
    await client.query("begin");
    await client.query({
      name: "caller",
      text: "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)",
      values: [this.#claims.role, JSON.stringify(this.#claims)],
    });
    return client;
  }
}

async function usersById(session, ids) {
  const rows = await session.query("users", "select * from users where id = any($1)", [ids]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id) ?? null);
}

const ARTICLES = `
  select * from articles
  where ($2::timestamptz is null or (created_at, id) < ($2, $3::bigint)) and ($4::article_status is null or status = $4)
  order by created_at desc, id desc limit $1`;
const NEWEST = "select * from articles order by created_at desc, id desc limit $1";
const COUNT = "select count(*)::int from articles";
const COUNT_OF_STATUS = `${COUNT} where status = $1`;
const INSERT = `
  insert into articles (title, content, tags, status)
  values ($1, $2, coalesce($3::text[], '{}'), coalesce($4::article_status, 'DRAFT')) returning *`;

const cursorOf = ({ id, created_at }) => Buffer.from(JSON.stringify([created_at, id])).toString("base64url");

async function page({ first, after, status }, { session }) {
  const [createdAt, id] = after ? JSON.parse(Buffer.from(after, "base64url").toString()) : [null, null];
  const rows =
    after || status
      ? await session.query("articles", ARTICLES, [first + 1, createdAt, id, status])
      : await session.query("newest", NEWEST, [first + 1]);
  const edges = rows.slice(0, first).map((node) => ({ node, cursor: cursorOf(node) }));
  const pageInfo = {
    hasNextPage: rows.length > first,
    hasPreviousPage: Boolean(after),
    startCursor: edges[0]?.cursor ?? null,
    endCursor: edges.at(-1)?.cursor ?? null,
  };
  return { edges, pageInfo, status };
}

async function createArticle({ input: { title, content, tags, status } }, { session }) {
  if (!session.userId) return { success: false, message: "Login required: sign in to write an article." };
  if (title.length < 5) {
    return { success: false, errors: [{ field: "title", message: "Give a title of at least 5 characters." }] };
  }
  const [article] = await session.query("create article", INSERT, [title, content, tags, status]);
  return { success: true, message: "The article was created.", article };
}

const resolvers = {
  Time: new GraphQLScalarType({ name: "Time", serialize: (date) => date.toISOString() }),
  Query: {
    article: async (_, { id }, { session }) =>
      (await session.query("article", "select * from articles where id = $1", [id]))[0] ?? null,
    articles: (_, given, context) => page(given, context),
  },
  Mutation: { createArticle: (_, given, context) => createArticle(given, context) },
  ArticleConnection: {
    totalCount: async ({ status }, _, { session }) => {
      const rows = status
        ? await session.query("count of status", COUNT_OF_STATUS, [status])
        : await session.query("count", COUNT);
      return rows[0].count;
    },
  },
  Article: {
    author: ({ author_id }, _, { users }) => users.load(author_id),
    createdAt: ({ created_at }) => created_at,
    updatedAt: ({ updated_at }) => updated_at,
  },
  User: { createdAt: ({ created_at }) => created_at, updatedAt: ({ updated_at }) => updated_at },
};

const endTransaction = {
  requestDidStart: async () => ({
    willSendResponse: ({ contextValue: { session }, errors }) => session.end(errors ? "rollback" : "commit"),
  }),
};

const server = new ApolloServer({ typeDefs, resolvers, plugins: [endTransaction] });
await startStandaloneServer(server, {
  listen: { port: Number(PORT), host: "127.0.0.1" },
  context: async ({ req }) => {
    const session = openSession(req.headers.authorization);
    return { session, users: new DataLoader((ids) => usersById(session, ids)) };
  },
});
process.on("SIGTERM", () => process.exit());

function openSession(authorization) {
  try {
    return new Session(authorization);
  } catch {
    throw new GraphQLError("Your token is not valid.", { extensions: { code: "UNAUTHENTICATED" } });
  }
}
