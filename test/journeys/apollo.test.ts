import { createHash } from "node:crypto";
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "grafast/graphql";
import { createClient } from "graphql-ws";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";

const graphql = useFixture(() =>
  serveGraphQL({
    before: "insert into public.users (name, email) values ('Ann', 'ann@example.org')",
  }),
);

/** Makes a client with the links of Apollo's documentation: sockets for subscriptions, HTTP for the rest. */
function connect(token?: string) {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const socket = createClient({ url: graphql.socketUrl, webSocketImpl: WebSocket, connectionParams: headers });
  const link = ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    new HttpLink({ uri: graphql.url, headers }),
  );
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  return {
    client,
    close: async () => {
      client.stop();
      await socket.dispose();
    },
  };
}

const ARTICLES = gql`
  query Articles($first: Int, $after: String) {
    articles(first: $first, after: $after) {
      totalCount
      edges { cursor node { id title author { id name } } }
      pageInfo { hasNextPage endCursor }
    }
  }
`;
const CREATE = gql`
  mutation Create($input: CreateArticleInput!) {
    createArticle(input: $input) { success message article { id title status } errors { field message } }
  }
`;

type TestResponse = {
  readonly user: { readonly name: string };
  readonly articles: {
    readonly edges: readonly { readonly node: { readonly title: string } }[];
    readonly pageInfo: { readonly endCursor: string };
  };
};

describe("Apollo Client", () => {
  test("writes as the user of its token, pages through a connection, and caches the results", async () => {
    const { client, close } = connect(tokenFor(1));
    for (const title of ["First one", "Second one", "Third one"]) {
      const { data } = await client.mutate({ mutation: CREATE, variables: { input: { title, content: "…" } } });
      expect(data).toMatchObject({
        createArticle: { success: true, article: { title, status: "DRAFT" }, errors: null },
      });
    }
    const first = await client.query<TestResponse>({ query: ARTICLES, variables: { first: 2 } });
    expect(first.data!.articles).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } });
    const after = first.data!.articles.pageInfo.endCursor;
    const second = await client.query<TestResponse>({ query: ARTICLES, variables: { first: 2, after } });
    expect(second.data!.articles.edges.map(({ node }) => node.title)).toEqual(["First one"]);
    expect(client.cache.extract()).toMatchObject({ "User:1": { name: "Ann" } });
    await close();
  });

  test("pages through a filtered and ordered connection", async () => {
    const { client, close } = connect();
    const query = gql`
      query Found($where: ArticleWhereInput, $orderBy: [ArticleOrderByInput!], $after: String) {
        articles(first: 1, after: $after, where: $where, orderBy: $orderBy) {
          totalCount
          edges { node { id title } }
          pageInfo { endCursor hasNextPage }
        }
      }
    `;
    const variables = {
      where: { title: { ilike: "%ir%" }, author: { name: { eq: "Ann" } } },
      orderBy: [{ title: "DESC" }],
    };
    const first = await client.query<TestResponse>({ query, variables });
    const after = first.data!.articles.pageInfo.endCursor;
    const second = await client.query<TestResponse>({ query, variables: { ...variables, after } });
    const pages = [first, second].map(({ data }) => data!.articles.edges.map(({ node }) => node.title));
    expect(pages).toEqual([["Third one"], ["First one"]]);
    await close();
  });

  test("gets invalid input as data", async () => {
    const { client, close } = connect(tokenFor(1));
    const { data } = await client.mutate({ mutation: CREATE, variables: { input: { title: "No", content: "" } } });
    expect(data).toMatchObject({ createArticle: { success: false, article: null, errors: [{ field: "title" }] } });
    await close();
  });

  test("gets errors with their codes, beside the data", async () => {
    const { client, close } = connect();
    const query = gql`{ me { id } }`;
    const refused = await client.query({ query }).catch((error: unknown) => error);
    expect(CombinedGraphQLErrors.is(refused)).toBe(true);
    expect((refused as CombinedGraphQLErrors).errors).toMatchObject([
      { path: ["me"], extensions: { code: "AUTH_REQUIRED" } },
    ]);
    const response = await client.query({ query: gql`{ user(id: 1) { name } nobody: user(id: 99) { name } }` });
    expect(response.data).toMatchObject({ user: { name: "Ann" }, nobody: null });
    await close();
  });

  test("receives changes by other users", async () => {
    const { client, close } = connect(tokenFor(1));
    const heard: unknown[] = [];
    const subscription = client
      .subscribe({ query: gql`subscription { onArticleCreated { title author { name } } }` })
      .subscribe(({ data, error }) => heard.push(error ?? data));
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(1);
    await graphql.ask('mutation { createArticle(input: {title: "From elsewhere", content: ""}) { success } }', {
      token: tokenFor(1),
    });
    await expect
      .poll(() => heard)
      .toMatchObject([{ onArticleCreated: { title: "From elsewhere", author: { name: "Ann" } } }]);
    subscription.unsubscribe();
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(0);
    await close();
  });

  test("keeps the objects of its cache up to date by a live query", async () => {
    const { client, close } = connect(tokenFor(1));
    const subscription = client
      .subscribe({ query: gql`subscription { live { article(id: 1) { id title comments { content } } } }` })
      .subscribe({});
    const titles: unknown[] = [];
    const watched = client
      .watchQuery<{ article: { title: string } }>({ query: gql`{ article(id: 1) { id title } }` })
      .subscribe(({ data }) => titles.push(data?.article?.title));
    await expect.poll(() => titles.at(-1)).toBe("First one");
    await graphql.sql("update public.articles set title = 'Another title' where id = 1");
    await expect.poll(() => titles.at(-1)).toBe("Another title");
    watched.unsubscribe();
    subscription.unsubscribe();
    await close();
  });

  test("falls back to whole documents if operations are not registered", async () => {
    const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
    const link = new PersistedQueryLink({ sha256 }).concat(new HttpLink({ uri: graphql.url }));
    const client = new ApolloClient({ link, cache: new InMemoryCache() });
    const { data } = await client.query<TestResponse>({ query: gql`{ user(id: 1) { name } }` });
    expect(data?.user).toMatchObject({ name: "Ann" });
    client.stop();
  });
});
