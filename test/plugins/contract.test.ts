import { isInputObjectType, isObjectType, printType } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema();

/** `id: ID!`, `articles(limit: Int = 10): [Article!]!`: the fields of a type, each as the language writes it. */
function fieldsOf(typeName: string): string[] {
  const type = generated.schema.getType(typeName);
  if (!isObjectType(type) && !isInputObjectType(type)) throw new Error(`${typeName} is no type with fields`);
  const withoutDescriptions = printType(type).replace(/"""[\s\S]*?"""\s*/g, "");
  const [, body = ""] = /\{([\s\S]*)\}/.exec(withoutDescriptions) ?? [];
  // Arguments with descriptions are printed in lines of their own.
  const oneLineEach = body.replace(
    /\(\s*([^)]*?)\s*\)/g,
    (_, inner: string) => `(${inner.split(/\s*\n\s*/).join(", ")})`,
  );
  return oneLineEach
    .split("\n")
    .map((line) => withoutAdditions(line.trim()))
    .filter((line) => line !== "");
}

/** The schema adds two optional arguments to each collection. */
function withoutAdditions(field: string): string {
  return field.replace(/, where: \w+WhereInput, orderBy: \[\w+OrderByInput!\]\)/, ")");
}

describe("a documented type has the documented fields, and those of the examples", () => {
  test.each([
    [
      "User",
      [
        "id: ID!",
        "name: String!",
        "email: String!",
        "age: Int",
        "articles(limit: Int = 10): [Article!]!",
        "createdAt: Time!",
        "updatedAt: Time!",
        "avatar: String",
      ],
    ],
    [
      "Article",
      [
        "id: ID!",
        "title(language: String): String!",
        "content: String!",
        "status: ArticleStatus!",
        "author: User!",
        "tags: [String!]!",
        "createdAt: Time!",
        "updatedAt: Time",
        "summary: String",
        "comments(limit: Int = 10): [Comment!]!",
        "relatedArticles(limit: Int = 5): [Article!]!",
      ],
    ],
    ["Comment", ["id: ID!", "content: String!", "author: User!", "article: Article!", "createdAt: Time!"]],
    ["ArticleConnection", ["edges: [ArticleEdge!]!", "pageInfo: PageInfo!", "totalCount: Int!"]],
    ["ArticleEdge", ["node: Article!", "cursor: String!"]],
    ["PageInfo", ["hasNextPage: Boolean!", "hasPreviousPage: Boolean!", "startCursor: String", "endCursor: String"]],
    ["CreateUserInput", ["name: String!", "email: String!", "age: Int"]],
    ["CreateArticleInput", ["title: String!", "content: String!", "tags: [String!]", "status: ArticleStatus = DRAFT"]],
    ["UpdateArticleInput", ["title: String", "content: String", "tags: [String!]", "status: ArticleStatus"]],
    ["CreateCommentInput", ["articleId: ID!", "content: String!"]],
    [
      "ArticleFilterInput",
      [
        "status: ArticleStatus",
        "authorId: ID",
        "tag: String",
        "keyword: String",
        "createdAfter: Time",
        "createdBefore: Time",
      ],
    ],
    ["MutationResult", ["success: Boolean!", "message: String", "article: Article", "errors: [FieldError!]"]],
    ["FieldError", ["field: String!", "message: String!"]],
    [
      "Subscription",
      [
        "onArticleCreated: Article!",
        "onCommentAdded(articleId: ID!): Comment!",
        "onArticleUpdated(id: ID): Article",
        // The contract lacks this.
        "live: Query!",
      ],
    ],
  ])("%s", (type, fields) => {
    expect(fieldsOf(type).sort()).toEqual([...fields].sort());
  });

  test("ArticleStatus", () => {
    expect(generated.schema.getType("ArticleStatus")?.toConfig()).toMatchObject({
      values: { DRAFT: { value: "DRAFT" }, PUBLISHED: { value: "PUBLISHED" }, ARCHIVED: { value: "ARCHIVED" } },
    });
  });
});

describe("the documented operations exist; all others concern other tables", () => {
  const isOfTranslations = (field: string) => /^\w*articleTranslation/i.test(field);

  test("queries", () => {
    expect(
      fieldsOf("Query")
        .filter((field) => !isOfTranslations(field))
        .sort(),
    ).toEqual([
      "article(id: ID!): Article",
      // The contract lacks this.
      "articleSearchResults(first: Int, after: String, last: Int, before: String, status: ArticleStatus, filter: ArticleFilterInput): ArticleSearchResultConnection!",
      "articles(first: Int, after: String, last: Int, before: String, status: ArticleStatus, filter: ArticleFilterInput): ArticleConnection!",
      "me: User!",
      "search(keyword: String!): [Article!]!",
      "user(id: ID!): User",
      "users(limit: Int = 10, offset: Int = 0): [User!]!",
    ]);
  });

  test("mutations", () => {
    expect(
      fieldsOf("Mutation")
        .filter((field) => !isOfTranslations(field))
        .sort(),
    ).toEqual([
      "createArticle(input: CreateArticleInput!): MutationResult!",
      "createComment(input: CreateCommentInput!): Comment!",
      "createUser(input: CreateUserInput!): User!",
      "deleteArticle(id: ID!): Boolean!",
      "publishArticle(id: ID!): Article!",
      "updateArticle(id: ID!, input: UpdateArticleInput!): Article!",
    ]);
  });

  test("a table that is not documented follows the conventions", () => {
    const ofTranslations = [...fieldsOf("Query"), ...fieldsOf("Mutation")].filter(isOfTranslations).sort();
    expect(ofTranslations).toEqual([
      "articleTranslation(articleId: ID!, language: String!): ArticleTranslation",
      "articleTranslationSearchResults(first: Int, after: String, last: Int, before: String, articleId: ID, filter: ArticleTranslationFilterInput): ArticleTranslationSearchResultConnection!",
      "articleTranslations(first: Int, after: String, last: Int, before: String, articleId: ID, filter: ArticleTranslationFilterInput): ArticleTranslationConnection!",
      "createArticleTranslation(input: CreateArticleTranslationInput!): ArticleTranslation!",
      "deleteArticleTranslation(articleId: ID!, language: String!): Boolean!",
      "updateArticleTranslation(articleId: ID!, language: String!, input: UpdateArticleTranslationInput!): ArticleTranslation!",
      "updateArticleTranslations(input: [UpdateArticleTranslationsInput!]!): [ArticleTranslation!]!",
      "upsertArticleTranslations(input: [UpsertArticleTranslationsInput!]!, onConflict: ArticleTranslationUniqueKey! = ARTICLE_ID_LANGUAGE, resolution: ConflictResolution! = UPDATE): [ArticleTranslation!]!",
    ]);
    expect(fieldsOf("ArticleTranslation")).toContain("article: Article!");
  });
});
