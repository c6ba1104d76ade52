import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { printSchema } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { schemaFor } from "../graphql/compile/oracle.ts";
import { serveGraphQL } from "../graphql.ts";
import { installedPeer } from "../installed-peer.ts";

const require = createRequire(import.meta.url);
const COMPILER = installedPeer("relay-compiler/cli.js");

const SOURCE = `
  import { graphql } from "react-relay";
  graphql\`
    query articlesQuery($where: ArticleWhereInput, $orderBy: [ArticleOrderByInput!], $first: Int!, $after: String) {
      ...articlesList @arguments(where: $where, orderBy: $orderBy, first: $first, after: $after)
    }
  \`;
  graphql\`
    fragment articlesList on Query
    @argumentDefinitions(where: { type: "ArticleWhereInput" }, orderBy: { type: "[ArticleOrderByInput!]" }, first: { type: "Int!" }, after: { type: "String" })
    @refetchable(queryName: "articlesPageQuery") {
      articles(where: $where, orderBy: $orderBy, first: $first, after: $after) @connection(key: "articlesList_articles") {
        totalCount
        edges { node { id title author { name } comments(where: { content: { ilike: "%yes%" } }, orderBy: [{ createdAt: DESC }]) { content } } }
      }
    }
  \`;
`;

const graphql = useFixture(() =>
  serveGraphQL({
    before: `
      insert into public.users (name, email) values ('Ann', 'ann@example.org'), ('Bob', 'bob@example.org');
      insert into public.articles (author_id, title, content, status) select 1 + n % 2, 'Title ' || n, '', 'PUBLISHED' from generate_series(1, 7) as n;
      insert into public.comments (article_id, author_id, content) select id, 1, words from public.articles, unnest(array['Yes', 'No']) as words`,
  }),
);
const folder = useFolder("relay-");

type Artifact = { readonly params: { readonly name: string; readonly text: string } };

describe.skipIf(COMPILER === null)("the compiler of Relay", () => {
  test("accepts the schema and connections with where and orderBy, and its operations page through them", async () => {
    await mkdir(join(folder, "src"));
    await writeFile(join(folder, "schema.graphql"), printSchema(await schemaFor(graphql.service, null)));
    await writeFile(join(folder, "src", "articles.js"), SOURCE);
    const config = { src: "./src", schema: "./schema.graphql", language: "javascript" };
    await writeFile(join(folder, "relay.config.json"), JSON.stringify(config));
    await promisify(execFile)(process.execPath, [COMPILER!], { cwd: folder });

    const artifactOf = (name: string): Artifact =>
      require(join(folder, "src", "__generated__", `${name}.graphql.js`)).default;
    const filter = {
      where: { author: { name: { eq: "Bob" } }, comments: { some: { content: { eq: "Yes" } } } },
      orderBy: [{ title: "DESC" }],
      first: 3,
    };
    const readPage = async (name: string, after: string | null) => {
      const { data, errors } = await graphql.ask(artifactOf(name).params.text, { variables: { ...filter, after } });
      expect(errors).toBeUndefined();
      const { totalCount, edges, pageInfo } = data.articles;
      expect(totalCount).toBe(4);
      for (const { node } of edges)
        expect(node).toMatchObject({ author: { name: "Bob" }, comments: [{ content: "Yes" }] });
      const titles = edges.map(({ node }: { readonly node: { readonly title: string } }) => node.title);
      return { titles, pageInfo };
    };
    const first = await readPage("articlesQuery", null);
    expect(first).toMatchObject({ titles: ["Title 7", "Title 5", "Title 3"], pageInfo: { hasNextPage: true } });
    const second = await readPage("articlesPageQuery", first.pageInfo.endCursor);
    expect(second).toMatchObject({ titles: ["Title 1"], pageInfo: { hasNextPage: false } });
  });
});
