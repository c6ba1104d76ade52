import { beforeEach, describe, expect, test } from "vitest";
import { admin, alice, anonymous, bob, SEED, service } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const FAR_AWAY = `do $$ begin execute format('alter database %I set timezone to "Asia/Kolkata"', current_database()); end $$;`;

const generated = useGeneratedSchema({ sql: SEED + FAR_AWAY });
const ask: typeof generated.ask = (...question) => generated.ask(...question);
const read: typeof generated.read = (...question) => generated.read(...question);
const owner = (text: string) => generated.owner.query(text);

/** Article 1 is Alice's, 2 is Bob's. */
beforeEach(() => owner("update public.articles set status = 'DRAFT', title = 'Untouched'"));

describe("createUser", () => {
  const CREATE = `mutation ($input: CreateUserInput!) { createUser(input: $input) { id name email age createdAt updatedAt articles { id } } }`;

  test("adds a user, for any caller", async () => {
    const { createUser } = await read(anonymous, CREATE, {
      input: { name: "Dora", email: "dora@example.org", age: 40 },
    });
    expect(createUser).toMatchObject({ name: "Dora", email: "dora@example.org", age: 40, articles: [] });
    expect(await read(anonymous, `{ user(id: ${createUser.id}) { name } }`)).toEqual({ user: { name: "Dora" } });
  });

  test.each(["alice@example.org", "ALICE@example.org"])("refuses %s, which is registered", async (email) => {
    const { data, faults } = await ask(anonymous, CREATE, { input: { name: "Other", email } });
    expect(data).toBeNull();
    expect(faults).toEqual([
      { message: "This e-mail address is already registered", code: "RESOURCE_CONFLICT", path: "createUser" },
    ]);
    const { rows } = await owner("select from public.users where name = 'Other'");
    expect(rows).toEqual([]);
  });

  test.each([
    { name: "Other", email: "no address" },
    { name: " ", email: "other@example.org" },
    { name: "Other", email: "other@example.org", age: 200 },
  ])("refuses %j", async (input) => {
    expect((await ask(anonymous, CREATE, { input })).faults).toMatchObject([{ code: "VALIDATION_ERROR" }]);
  });
});

describe("createArticle", () => {
  const CREATE = `mutation ($input: CreateArticleInput!) {
    createArticle(input: $input) { success message article { title status tags updatedAt author { name } } errors { field message } }
  }`;
  const countArticles = async () => (await owner("select from public.articles")).rowCount;

  test("reports that sign-in is required as data, not as an error", async () => {
    const before = await countArticles();
    const { createArticle } = await read(anonymous, CREATE, { input: { title: "Good title", content: "Text" } });
    expect(createArticle).toMatchObject({ success: false, article: null, message: expect.stringMatching(/login/i) });
    expect(await countArticles()).toBe(before);
  });

  test("names the field of a title under 5 characters", async () => {
    const before = await countArticles();
    const { createArticle } = await read(alice, CREATE, { input: { title: "Four", content: "Text" } });
    expect(createArticle).toMatchObject({ success: false, article: null });
    expect(createArticle.errors).toEqual([{ field: "title", message: "Give a title of at least 5 characters." }]);
    expect(await countArticles()).toBe(before);
  });

  test("returns the article, by the caller, a draft without tags", async () => {
    const { createArticle } = await read(alice, CREATE, { input: { title: "Five!", content: "Text" } });
    expect(createArticle).toEqual({
      success: true,
      message: expect.any(String),
      article: { title: "Five!", status: "DRAFT", tags: [], updatedAt: null, author: { name: "Alice" } },
      errors: null,
    });
  });

  test.each(["DRAFT", "PUBLISHED", "ARCHIVED"])("accepts the status %s and tags", async (status) => {
    const { createArticle } = await read(bob, CREATE, {
      input: { title: "Five!", content: "Text", status, tags: ["a", 'b "c"'] },
    });
    expect(createArticle.article).toMatchObject({ status, tags: ["a", 'b "c"'], author: { name: "Bob" } });
  });

  test("accepts null for optional arguments", async () => {
    const { createArticle } = await read(bob, CREATE, {
      input: { title: "Five!", content: "", status: null, tags: null },
    });
    expect(createArticle.article).toMatchObject({ status: "DRAFT", tags: [] });
  });
});

describe.each([
  [
    "updateArticle",
    (id: string) => `mutation { updateArticle(id: "${id}", input: { title: "Changed" }) { id title status } }`,
  ],
  ["publishArticle", (id: string) => `mutation { publishArticle(id: "${id}") { id title status } }`],
])("%s", (name, mutation) => {
  test.each([
    ["nobody who is signed in", anonymous, "1", "AUTH_REQUIRED"],
    ["somebody else than the author", bob, "1", "PERMISSION_DENIED"],
    ["the author of others, about one that is not there", alice, "999", "RESOURCE_NOT_FOUND"],
    ["somebody with an id that is none", alice, "abc", "RESOURCE_NOT_FOUND"],
    ["somebody with an id beyond all", alice, "99999999999999999999", "RESOURCE_NOT_FOUND"],
  ])("refuses %s", async (_, caller, id, code) => {
    const { data, faults } = await ask(caller, mutation(id));
    expect(data).toBeNull();
    expect(faults).toMatchObject([{ code, path: name }]);
    expect(
      (await owner("select from public.articles where title = 'Untouched' and status = 'DRAFT'")).rowCount,
    ).toBeGreaterThan(1);
  });

  test.each([
    ["its author", alice],
    ["an administrator", admin],
    ["a server", service],
  ])("succeeds for %s", async (_, caller) => {
    const data = await read(caller, mutation("1"));
    expect(data[name]).toMatchObject(name === "publishArticle" ? { status: "PUBLISHED" } : { title: "Changed" });
  });
});

describe("the status of an article", () => {
  test.each([
    ["DRAFT", "PUBLISHED"],
    ["DRAFT", "ARCHIVED"],
    ["PUBLISHED", "DRAFT"],
    ["PUBLISHED", "ARCHIVED"],
    ["ARCHIVED", "DRAFT"],
    ["ARCHIVED", "PUBLISHED"],
    ["ARCHIVED", "ARCHIVED"],
  ])("changes from %s to %s by updateArticle", async (from, to) => {
    await owner(`update public.articles set status = '${from}' where id = 1`);
    const { updateArticle } = await read(
      alice,
      `mutation { updateArticle(id: 1, input: { status: ${to} }) { status title updatedAt } }`,
    );
    expect(updateArticle).toEqual({ status: to, title: "Untouched", updatedAt: expect.any(String) });
  });

  test.each(["DRAFT", "PUBLISHED", "ARCHIVED"])("changes from %s to PUBLISHED by publishArticle", async (from) => {
    await owner(`update public.articles set status = '${from}' where id = 1`);
    expect(await read(alice, "mutation { publishArticle(id: 1) { status } }")).toEqual({
      publishArticle: { status: "PUBLISHED" },
    });
  });

  test("stays after an update without changes, and after a refused title", async () => {
    expect(await read(alice, "mutation { updateArticle(id: 1, input: {}) { title } }")).toEqual({
      updateArticle: { title: "Untouched" },
    });
    const { faults } = await ask(
      alice,
      `mutation { updateArticle(id: 1, input: { title: "Four", status: ARCHIVED }) { id } }`,
    );
    expect(faults).toMatchObject([{ code: "VALIDATION_ERROR" }]);
    expect(await read(anonymous, "{ article(id: 1) { status } }")).toEqual({ article: { status: "DRAFT" } });
  });
});

describe("deleteArticle", () => {
  const deletion = (id: string | number) => `mutation { deleteArticle(id: "${id}") }`;

  test.each(["999", "abc"])("is false for %s, which does not exist", async (id) => {
    expect(await read(alice, deletion(id))).toEqual({ deleteArticle: false });
  });

  test("is an error for anonymous callers, and for callers other than the author", async () => {
    expect((await ask(anonymous, deletion(1))).faults).toMatchObject([{ code: "AUTH_REQUIRED" }]);
    expect((await ask(bob, deletion(1))).faults).toMatchObject([{ code: "PERMISSION_DENIED" }]);
    expect(await read(anonymous, "{ article(id: 1) { id } }")).toEqual({ article: { id: "1" } });
  });

  test.each([
    ["its author", alice],
    ["an administrator", admin],
  ])("is true for %s, and deletes the comments too", async (_, caller) => {
    const { rows } = await owner(
      "insert into public.articles (title, content, author_id) values ('To go', '', 1) returning id",
    );
    const id = rows[0].id;
    await owner(`insert into public.comments (article_id, author_id, content) values (${id}, 2, 'Gone too')`);
    expect(await read(caller, deletion(id))).toEqual({ deleteArticle: true });
    expect(await read(anonymous, `{ article(id: ${id}) { id } }`)).toEqual({ article: null });
    expect((await owner(`select from public.comments where article_id = ${id}`)).rowCount).toBe(0);
  });
});

describe("createComment", () => {
  const CREATE = `mutation ($articleId: ID!, $content: String!) {
    createComment(input: { articleId: $articleId, content: $content }) { content createdAt author { name } article { id } }
  }`;

  test("returns the comment, by the caller", async () => {
    expect(await read(bob, CREATE, { articleId: 1, content: "Indeed." })).toEqual({
      createComment: {
        content: "Indeed.",
        createdAt: expect.any(String),
        author: { name: "Bob" },
        article: { id: "1" },
      },
    });
  });

  test.each([
    ["who is not signed in", anonymous, "1", "Indeed.", "AUTH_REQUIRED"],
    ["one on nothing", bob, "999", "Indeed.", "RESOURCE_NOT_FOUND"],
    ["one on what is no id", bob, "abc", "Indeed.", "RESOURCE_NOT_FOUND"],
    ["an empty one", bob, "1", " ", "VALIDATION_ERROR"],
  ])("refuses %s", async (_, caller, articleId, content, code) => {
    expect((await ask(caller, CREATE, { articleId, content })).faults).toMatchObject([{ code }]);
  });
});

describe("reading", () => {
  test("me is the caller, or an error", async () => {
    expect(await read(alice, "{ me { id name } }")).toEqual({ me: { id: "1", name: "Alice" } });
    expect((await ask(anonymous, "{ me { id } }")).faults).toMatchObject([{ code: "AUTH_REQUIRED", path: "me" }]);
    expect((await ask({ role: "authenticated", sub: "999" }, "{ me { id } }")).faults).toMatchObject([
      { code: "AUTH_REQUIRED" },
    ]);
  });

  test.each(["999", "abc", "", "1.5", "99999999999999999999"])(
    "a missing row, with id %j, is null without an error",
    async (id) => {
      expect(
        await read(anonymous, "query ($id: ID!) { user(id: $id) { id } article(id: $id) { id } }", { id }),
      ).toEqual({
        user: null,
        article: null,
      });
    },
  );

  test("is open to all callers with any status", async () => {
    await owner("update public.articles set status = 'ARCHIVED' where id = 2");
    expect(await read(anonymous, "{ article(id: 2) { status author { name articles { id } } } }")).toEqual({
      article: { status: "ARCHIVED", author: { name: "Bob", articles: expect.arrayContaining([{ id: "2" }]) } },
    });
  });

  test("returns a title in a language, if there is a translation", async () => {
    expect(
      await read(
        anonymous,
        `{ article(id: 1) { title de: title(language: "de") fr: title(language: "fr") none: title(language: null) } }`,
      ),
    ).toEqual({
      article: { title: "Untouched", de: "Alice schreibt", fr: "Untouched", none: "Untouched" },
    });
  });

  test("returns the author's summary, or the beginning of the text", async () => {
    await owner(
      "update public.articles set content = repeat('ä', 300) where id = 1; update public.articles set summary = 'In short.' where id = 2",
    );
    expect(await read(anonymous, "{ one: article(id: 1) { summary } other: article(id: 2) { summary } }")).toEqual({
      one: { summary: "ä".repeat(200) },
      other: { summary: "In short." },
    });
  });

  test("related articles share a tag", async () => {
    expect(
      await read(anonymous, "{ article(id: 1) { relatedArticles { id } none: relatedArticles(limit: 0) { id } } }"),
    ).toEqual({
      article: { relatedArticles: [{ id: "2" }], none: [] },
    });
    expect((await ask(anonymous, "{ article(id: 1) { relatedArticles(limit: -1) { id } } }")).faults).toMatchObject([
      { code: "VALIDATION_ERROR" },
    ]);
  });

  test("searches tags, contents and titles; an empty search finds nothing", async () => {
    expect(
      await read(
        anonymous,
        `{ boats: search(keyword: "BOAT") { id } none: search(keyword: "") { id } unknown: search(keyword: "xyzzy") { id } }`,
      ),
    ).toEqual({
      boats: [{ id: "2" }],
      none: [],
      unknown: [],
    });
  });

  test("returns times in UTC, with any time zone of the session", async () => {
    await owner(`
      alter table public.users disable trigger _100_timestamps;
      update public.users set created_at = '2026-02-03T04:05:06.789Z' where id = 1;
      alter table public.users enable trigger _100_timestamps;
    `);
    expect(await read(anonymous, "{ user(id: 1) { createdAt } }")).toEqual({
      user: { createdAt: "2026-02-03T04:05:06.789Z" },
    });
  });
});

test("follows the mutations of one operation, which run in their order", async () => {
  const data = await read(
    alice,
    `mutation {
      a: createArticle(input: { title: "First of three", content: "" }) { article { id } }
      b: publishArticle(id: 1) { status }
      c: updateArticle(id: 1, input: { status: ARCHIVED }) { status }
      d: createArticle(input: { title: "Last of three", content: "" }) { article { id } }
    }`,
  );
  expect([data.b.status, data.c.status]).toEqual(["PUBLISHED", "ARCHIVED"]);
  expect(Number(data.d.article.id)).toBe(Number(data.a.article.id) + 1);
});
