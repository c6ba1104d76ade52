import { CombinedError, createClient, fetchExchange, gql, subscriptionExchange } from "@urql/core";
import { createClient as createSocket, type Sink } from "graphql-ws";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";

const graphql = useFixture(() =>
  serveGraphQL({
    before: `
      insert into public.users (name, email) values ('Ann', 'ann@example.org');
      insert into public.articles (author_id, title, content) values (1, 'First one', '')`,
  }),
);

function connect(token?: string, more: object = {}) {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const socket = createSocket({ url: graphql.socketUrl, webSocketImpl: WebSocket, connectionParams: headers });
  const client = createClient({
    url: graphql.url,
    preferGetMethod: false,
    fetchOptions: { headers },
    exchanges: [
      subscriptionExchange({
        forwardSubscription: ({ query = "", variables }) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ query, variables: variables as Record<string, unknown> }, sink as Sink),
          }),
        }),
      }),
      fetchExchange,
    ],
    ...more,
  });
  return { client, close: () => socket.dispose() };
}

const COMMENT = gql`
  mutation Comment($input: CreateCommentInput!) { createComment(input: $input) { id content author { name } } }
`;

describe("urql", () => {
  test("reads by POST and by GET", async () => {
    const query = gql`query One($id: ID!) { article(id: $id) { title author { name } } }`;
    const result = { article: { title: "First one", author: { name: "Ann" } } };
    for (const preferGetMethod of [false, "force"]) {
      const { client, close } = connect(undefined, { preferGetMethod });
      const { data, error } = await client.query(query, { id: "1" }).toPromise();
      expect(error).toBeUndefined();
      expect(data).toMatchObject(result);
      await close();
    }
  });

  test("filters and orders by variables", async () => {
    const query = gql`
      query Found($where: ArticleWhereInput, $orderBy: [ArticleOrderByInput!]) {
        articles(where: $where, orderBy: $orderBy) { edges { node { title } } }
      }
    `;
    const { client, close } = connect();
    const titlesOf = async (where: object) => {
      const { data, error } = await client.query(query, { where, orderBy: [{ author: { name: "ASC" } }] }).toPromise();
      expect(error).toBeUndefined();
      return data.articles.edges.map(({ node }: { node: { title: string } }) => node.title);
    };
    expect(await titlesOf({ title: { ilike: "first%" }, author: { name: { eq: "Ann" } } })).toEqual(["First one"]);
    expect(await titlesOf({ not: { author: { name: { eq: "Ann" } } } })).toEqual([]);
    await close();
  });

  test("writes as the user of its token, and gets an error code without one", async () => {
    const variables = { input: { articleId: "1", content: "Well said" } };
    const ann = connect(tokenFor(1));
    expect((await ann.client.mutation(COMMENT, variables).toPromise()).data).toMatchObject({
      createComment: { content: "Well said", author: { name: "Ann" } },
    });
    const anonymous = connect();
    const { error } = await anonymous.client.mutation(COMMENT, variables).toPromise();
    expect(error).toBeInstanceOf(CombinedError);
    expect(error?.graphQLErrors).toMatchObject([{ extensions: { code: "AUTH_REQUIRED" } }]);
    await Promise.all([ann.close(), anonymous.close()]);
  });

  test("gets the errors of an invalid document", async () => {
    const { client, close } = connect();
    const { error, data } = await client.query("{ nothing }", {}).toPromise();
    expect(data).toBeUndefined();
    expect(error?.graphQLErrors).toMatchObject([{ extensions: { code: "GRAPHQL_VALIDATION_FAILED" } }]);
    await close();
  });

  test("receives new comments on one article", async () => {
    const { client, close } = connect(tokenFor(1));
    const heard: unknown[] = [];
    const query = gql`subscription Added($id: ID!) { onCommentAdded(articleId: $id) { content author { name } } }`;
    const { unsubscribe } = client
      .subscription(query, { id: "1" })
      .subscribe(({ data, error }) => heard.push(error ?? data));
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(1);
    await client.mutation(COMMENT, { input: { articleId: "1", content: "Heard" } }).toPromise();
    await expect.poll(() => heard).toMatchObject([{ onCommentAdded: { content: "Heard", author: { name: "Ann" } } }]);
    unsubscribe();
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(0);
    await close();
  });

  test("keeps the result of a live query", async () => {
    const { client, close } = connect(tokenFor(1));
    const query = gql`subscription Live($id: ID!) { live { article(id: $id) { title comments { content } } } }`;
    const heard: unknown[] = [];
    const { unsubscribe } = client
      .subscription(query, { id: "1" })
      .subscribe(({ data, error }) => heard.push(error ?? data?.live.article.title));
    await expect.poll(() => heard).toEqual(["First one"]);
    await graphql.sql("update public.articles set title = 'Second title'");
    await expect.poll(() => heard).toEqual(["First one", "Second title"]);
    unsubscribe();
    await close();
  });
});
