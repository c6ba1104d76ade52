import { beforeAll, describe, expect, test } from "vitest";
import { alice, anonymous, bob, type Caller, SEED } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({ sql: SEED });

beforeAll(async () => {
  await generated.owner.query(`
    insert into public.articles (title, content, author_id, tags)
      select 'More of it', '', 1 + n % 3, '{summer}' from generate_series(1, 30) as n;
    insert into public.comments (article_id, author_id, content)
      select 3 + n % 10, 1 + n % 3, 'Yes' from generate_series(1, 100) as n;
  `);
});

/** Each query has the same number of statements, however many rows there are. */
describe("a query without one statement per row", () => {
  test.each<[number, string, Caller, string]>([
    [1, "a user", anonymous, "{ user(id: 1) { name email } }"],
    [1, "a user with articles", anonymous, "{ user(id: 1) { name articles { title author { name } } } }"],
    [
      1,
      "users with articles and their authors",
      anonymous,
      "{ users { name articles(limit: 5) { title author { name } } } }",
    ],
    [
      1,
      "an article with author, comments and their authors",
      anonymous,
      "{ article(id: 3) { title author { name } comments { content author { name } } } }",
    ],
    [1, "an article with related ones", anonymous, "{ article(id: 3) { title relatedArticles { id title } } }"],
    [
      1,
      "an article in three languages",
      anonymous,
      `{ article(id: 1) { title de: title(language: "de") fr: title(language: "fr") } }`,
    ],
    [
      1,
      "a page of articles",
      anonymous,
      "{ articles { edges { cursor node { id title summary author { name } comments(limit: 2) { content author { name } } } } pageInfo { hasNextPage hasPreviousPage endCursor } } }",
    ],
    [
      2,
      "a page of articles and how many there are",
      anonymous,
      "{ articles(status: DRAFT) { totalCount edges { node { id author { name } } } } }",
    ],
    [2, "how many there are, the page being checked all the same", anonymous, "{ articles { totalCount } }"],
    [1, "five levels", anonymous, "{ users { articles { comments { author { articles { id } } } } } }"],
    [1, "what is found", anonymous, `{ search(keyword: "more") { id title } }`],
    [2, "what is found, with authors", anonymous, `{ search(keyword: "more") { id title author { name } } }`],
    [1, "the caller", alice, "{ me { id name } }"],
    [1, "the caller with articles", alice, "{ me { id name articles { id title comments { content } } } }"],
    [2, "two fields at the top", anonymous, "{ user(id: 1) { name } article(id: 1) { title } }"],
    [
      1,
      "a user that is added",
      anonymous,
      `mutation { createUser(input: { name: "X", email: "x@example.org" }) { id name email } }`,
    ],
    [
      1,
      "an article that is refused",
      alice,
      `mutation { createArticle(input: { title: "Four", content: "" }) { success message article { id author { name } } errors { field message } } }`,
    ],
    [
      1,
      "an article that is added",
      alice,
      `mutation { createArticle(input: { title: "Added", content: "" }) { success message article { id title status tags createdAt author { name } } errors { field message } } }`,
    ],
    [
      1,
      "an article that is changed",
      alice,
      `mutation { updateArticle(id: 1, input: { title: "Changed" }) { id status tags updatedAt } }`,
    ],
    [
      1,
      "an article that is changed, with title and author",
      alice,
      `mutation { publishArticle(id: 1) { id title author { name } } }`,
    ],
    [1, "an article that is deleted", bob, "mutation { deleteArticle(id: 2) }"],
    [
      1,
      "a comment that is added",
      bob,
      `mutation { createComment(input: { articleId: 3, content: "Yes" }) { id content author { name } } }`,
    ],
  ])("%i for %s", async (count, _, caller, source) => {
    const { faults, statements } = await generated.ask(caller, source);
    expect(faults).toEqual([]);
    expect(statements).toHaveLength(count);
  });
});

describe("createUser", () => {
  const create = (email: string) =>
    generated.ask(anonymous, 'mutation ($email: String!) { createUser(input: { name: "X", email: $email }) { id } }', {
      email,
    });
  const taken = async () => (await generated.owner.query("select email from public.users limit 1")).rows[0].email;

  test("does the same work for a taken address, which only the answer tells", async () => {
    const [one, other] = [await create("new@example.org"), await create(await taken())];
    expect([one.faults, other.faults.map(({ code }) => code)]).toEqual([[], ["RESOURCE_CONFLICT"]]);
    expect(other.statements).toEqual(one.statements);
  });

  test("neither answers nor works differently for a taken address while sign-ups are closed", async () => {
    const settings = "insert into auth.account_settings (sign_ups) values (false)";
    await generated.owner.query(settings);
    const [one, other] = [await create("other@example.org"), await create(await taken())];
    await generated.owner.query("delete from auth.account_settings");
    expect(one.faults).toHaveLength(1);
    expect(other).toEqual(one);
  });
});

describe("the text of a statement", () => {
  test.each<[string, (value: number) => [string, Record<string, unknown>]]>([
    ["an id", (value) => ["query ($id: ID!) { article(id: $id) { title author { name } } }", { id: value }]],
    ["an id in the document", (value) => [`{ article(id: ${value}) { title } }`, {}]],
    [
      "a filter",
      (value) => [
        "query ($filter: ArticleFilterInput) { articles(filter: $filter) { edges { node { id } } } }",
        { filter: { authorId: value, tag: `tag ${value}` } },
      ],
    ],
    [
      "an argument of a function",
      (value) => ["query ($keyword: String!) { search(keyword: $keyword) { id } }", { keyword: `word ${value}` }],
    ],
    [
      "an argument of a field",
      (value) => [
        "query ($language: String) { articles { edges { node { title(language: $language) } } } }",
        { language: `l${value}` },
      ],
    ],
  ])("does not depend on %s", async (_, question) => {
    const [one, other] = [
      await generated.ask(anonymous, ...question(1)),
      await generated.ask(anonymous, ...question(22)),
    ];
    expect(one.statements).not.toEqual([]);
    expect(one.statements).toEqual(other.statements);
  });

  test("does not depend on the cursor", async () => {
    const query = "query ($after: String) { articles(first: 3, after: $after) { edges { cursor node { id } } } }";
    const first = await generated.read(anonymous, query);
    const page = (index: number) => generated.ask(anonymous, query, { after: first.articles.edges[index].cursor });
    expect((await page(0)).statements).toEqual((await page(2)).statements);
  });
});
