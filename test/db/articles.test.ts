import { describe, expect, test } from "vitest";
import { admin, alice, anonymous, asCaller, bob, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();

describe("an article", () => {
  test.each([
    ["a title under 5 characters", "'Four', '{}'", "23514", "articles_title_length"],
    ["a title of 301 characters", "repeat('t', 301), '{}'", "23514", "articles_title_max_length"],
    ["a tag of 101 characters", "'Five!', array['a', repeat('x', 101)]", "23514", "articles_tags_max_length"],
    ["101 tags", "'Five!', array_fill('x'::text, '{101}')", "23514", "articles_tags_max_count"],
    ["a million empty tags", "'Five!', array_fill(''::text, '{1000000}')", "23514", "articles_tags_max_count"],
    ["a tag that is null", "'Five!', '{a,null}'", "23514", "articles_tags_plain"],
    ["tags of two dimensions", "'Five!', '{{a},{b}}'", "23514", "articles_tags_plain"],
    ["tags that no index could hold", "'Five!', array[repeat('x', 2001)]", "23514", "articles_tags_length"],
  ])("with %s is refused", async (_, values, code, constraint) => {
    const statement = `insert into public.articles (content, title, tags) values ('', ${values})`;
    await expect(content.as(alice, statement)).rejects.toMatchObject({ code, constraint });
  });

  test.each([
    ["content", 1_000_000],
    ["summary", 2_000],
  ])("has a %s of at most %i characters", async (column, most) => {
    const insert = (length: number) =>
      content.as(
        alice,
        `insert into public.articles (title, content, ${column === "summary" ? "summary" : "status"})
           select 'Five!', ${column === "summary" ? "'', text" : "text, 'DRAFT'"} from repeat('é', $1) as text returning id`,
        [length],
      );
    expect(await insert(most)).toHaveLength(1);
    await expect(insert(most + 1)).rejects.toMatchObject({
      code: "23514",
      constraint: `articles_${column}_max_length`,
    });
  });

  test.each([
    ["title", "title"],
    ["summary", 'COALESCE(summary, "left"(content, 200))'],
  ])("costs no call of a function for its %s", async (column, output) => {
    const [row] = await content.as(
      anonymous,
      `explain (verbose, costs off, format json) select public.articles_${column}(article) from public.articles as article`,
    );
    expect((row!["QUERY PLAN"] as { Plan: { Output: string[] } }[])[0]!.Plan.Output).toEqual([output]);
  });

  test("begins as a draft of its author, without updated_at", async () => {
    const [article] = await content.as(
      alice,
      "insert into public.articles (title, content) values ('Five!', '') returning *",
    );
    expect(article).toMatchObject({ author_id: "1", status: "DRAFT", tags: [], summary: null, updated_at: null });
  });

  test("may be long: a million characters of different words still fit the indexes", async () => {
    const statement = `
      insert into public.articles (title, content)
        select 'Long one', string_agg(md5(n::text), ' ') from generate_series(1, 30300) as n
        returning length(content) > 999000 as long`;
    expect(await content.as(alice, statement)).toEqual([{ long: true }]);
  });
});

describe("articles_summary", () => {
  test.each([
    ["null", "repeat('é', 300)", "é".repeat(200)],
    ["'In short.'", "repeat('é', 300)", "In short."],
  ])("of the summary %s and a long content", async (summary, text, expected) => {
    const [row] = await content.as(
      alice,
      `insert into public.articles (title, summary, content) values ('Five!', ${summary}, ${text})
       returning public.articles_summary(articles) as summary`,
    );
    expect(row).toEqual({ summary: expected });
  });
});

describe("articles_related_articles", () => {
  const RELATED =
    "select related.title from public.articles, public.articles_related_articles(articles, $1) as related where articles.id = 1";

  test("returns those that share a tag, most common tags first, without the article itself", async () => {
    await content.owner.query("begin");
    await content.owner.query(`
      insert into public.articles (title, content, author_id, tags) values
        ('Garden and summer', '', 2, '{summer,garden,x}'), ('Nothing shared', '', 2, '{y}'), ('No tags', '', 2, '{}')
    `);
    const { rows } = await content.owner.query(RELATED, [5]);
    expect(rows).toEqual([{ title: "Garden and summer" }, { title: "Bob writes" }]);
    expect((await content.owner.query(RELATED, [1])).rows).toHaveLength(1);
    expect((await content.owner.query(RELATED, [0])).rows).toEqual([]);
    expect((await content.owner.query(RELATED, [null])).rows).toHaveLength(2);
    await content.owner.query("rollback");
  });
});

describe("articles_title", () => {
  const TITLE = "select public.articles_title(articles, $1) as title from public.articles where id = 1";

  test.each([
    [null, "Alice writes"],
    ["de", "Alice schreibt"],
    ["fr", "Alice writes"],
  ])("in %s is %s", async (language, title) => {
    expect(await content.as(anonymous, TITLE, [language])).toEqual([{ title }]);
  });

  test.each(["german", "DE", "de_DE", ""])("has no translation in a language with the name %j", async (language) => {
    const statement = "insert into public.article_translations (article_id, language, title) values (1, $1, 'Five!')";
    await expect(content.as(alice, statement, [language])).rejects.toMatchObject({
      constraint: "article_translations_language_format",
    });
  });

  test("may be 300 characters long", async () => {
    const statement = "insert into public.article_translations (article_id, language, title) values (1, 'fr', $1)";
    expect(await content.as(alice, `${statement} returning language`, ["t".repeat(300)])).toHaveLength(1);
    await expect(content.as(alice, statement, ["t".repeat(301)])).rejects.toMatchObject({
      constraint: "article_translations_title_max_length",
    });
  });
});

describe("create_article", () => {
  const CREATE = "select * from public.create_article($1, 'About it.')";

  test("returns an error as data to anonymous callers", async () => {
    const before = await content.as(service, "select from public.articles");
    const [result] = await content.as(anonymous, CREATE, ["Good title"]);
    expect(result).toMatchObject({ success: false, article: null, errors: null });
    expect(result?.message).toMatch(/login/i);
    expect(await content.as(service, "select from public.articles")).toHaveLength(before.length);
  });

  test("names the field of a title that is too short", async () => {
    const [result] = await content.as(
      alice,
      "select success, article, (errors[1]).field, (errors[1]).message from public.create_article('Four', '')",
    );
    expect(result).toEqual({
      success: false,
      article: null,
      field: "title",
      message: "Give a title of at least 5 characters.",
    });
  });

  test("returns the article, by its author, with defaults", async () => {
    const [result] = await content.as(
      alice,
      "select success, message, errors, (article).* from public.create_article('Five!', 'About it.')",
    );
    expect(result).toMatchObject({
      success: true,
      errors: null,
      title: "Five!",
      author_id: "1",
      tags: [],
      status: "DRAFT",
      message: "The article was created.",
    });
  });

  test("accepts tags and a status, and explicit nulls for the defaults", async () => {
    const [full] = await content.as(
      alice,
      "select (article).tags, (article).status from public.create_article('Five!', '', '{a,b}', 'PUBLISHED')",
    );
    expect(full).toEqual({ tags: ["a", "b"], status: "PUBLISHED" });
    const [empty] = await content.as(
      alice,
      "select (article).tags, (article).status from public.create_article('Five!', '', null, null)",
    );
    expect(empty).toEqual({ tags: [], status: "DRAFT" });
  });
});

describe("update_article", () => {
  test.each([
    ["an anonymous caller", anonymous, 1, "LOGIN"],
    ["somebody else", bob, 1, "NOPER"],
    ["anybody, of an article that is missing", alice, 99, "NTFND"],
  ])("refuses %s", async (_, caller, id, code) => {
    await expect(content.as(caller, "select public.update_article($1, 'Other title')", [id])).rejects.toMatchObject({
      code,
    });
  });

  test.each([
    ["its author", alice],
    ["an administrator", admin],
    ["a server of ours", service],
  ])("changes the given fields for %s and keeps the rest", async (_, caller) => {
    const [article] = await content.as(caller, "select * from public.update_article(1, status => 'ARCHIVED')");
    expect(article).toMatchObject({
      title: "Alice writes",
      author_id: "1",
      status: "ARCHIVED",
      tags: ["garden", "summer"],
      updated_at: expect.any(Date),
    });
  });

  test("leaves a title that is too short to the table's constraint", async () => {
    await expect(content.as(alice, "select public.update_article(1, 'Four')")).rejects.toMatchObject({
      code: "23514",
      constraint: "articles_title_length",
    });
  });
});

describe.each([
  ["publish_article", "select * from public.publish_article($1)"],
  [
    "the action publish",
    "select published.* from public.articles, public.publish(articles) as published where articles.id = $1",
  ],
])("%s", (_, statement) => {
  test("publishes for the author and for an administrator", async () => {
    for (const caller of [alice, admin]) {
      expect(await content.as(caller, statement, [1])).toMatchObject([{ id: "1", status: "PUBLISHED" }]);
    }
  });

  test("refuses other users and anonymous callers", async () => {
    await expect(content.as(bob, statement, [1])).rejects.toMatchObject({ code: "NOPER" });
    await expect(content.as(anonymous, statement, [1])).rejects.toMatchObject({ code: "LOGIN" });
  });
});

test("publish_article of a missing article is an error", async () => {
  await expect(content.as(alice, "select public.publish_article(99)")).rejects.toMatchObject({ code: "NTFND" });
});

describe("delete_article", () => {
  const DELETE = "select public.delete_article($1) as deleted";

  test("returns true for the author, and deletes the comments too", async () => {
    await asCaller(content.requests, alice, async () => {
      expect((await content.requests.query(DELETE, [1])).rows).toEqual([{ deleted: true }]);
      expect((await content.requests.query("select from public.comments where article_id = 1")).rowCount).toBe(0);
    });
    expect(await content.as(alice, "select from public.comments where article_id = 1")).toHaveLength(2);
  });

  test("returns true for an administrator", async () => {
    expect(await content.as(admin, DELETE, [1])).toEqual([{ deleted: true }]);
  });

  test("returns false for a missing article", async () => {
    expect(await content.as(alice, DELETE, [99])).toEqual([{ deleted: false }]);
  });

  test("refuses other users and anonymous callers, even for a missing article", async () => {
    await expect(content.as(bob, DELETE, [1])).rejects.toMatchObject({ code: "NOPER" });
    await expect(content.as(anonymous, DELETE, [99])).rejects.toMatchObject({ code: "LOGIN" });
  });
});

describe("create_comment", () => {
  const CREATE = "select * from public.create_comment($1, $2)";

  test("creates it with the caller as author", async () => {
    const [comment] = await content.as(bob, CREATE, [1, "So it is."]);
    expect(comment).toMatchObject({ article_id: "1", author_id: "2", content: "So it is.", updated_at: null });
  });

  test("refuses anonymous callers, a missing article, and an empty text", async () => {
    await expect(content.as(anonymous, CREATE, [1, "Hm."])).rejects.toMatchObject({ code: "LOGIN" });
    await expect(content.as(bob, CREATE, [99, "Hm."])).rejects.toMatchObject({ code: "NTFND", detail: "article_id" });
    for (const nothing of ["", " ", "\t\n", "\u00a0\u3000", "\u200b", "\u034f\u061c\u115f\u1160\u180b\u180f"]) {
      const empty = { code: "23514", constraint: "comments_content_present" };
      await expect(content.as(bob, CREATE, [1, nothing])).rejects.toMatchObject(empty);
    }
  });

  test("accepts 10,000 characters and not one more", async () => {
    expect(await content.as(bob, CREATE, [1, "é".repeat(10_000)])).toHaveLength(1);
    await expect(content.as(bob, CREATE, [1, "é".repeat(10_001)])).rejects.toMatchObject({
      code: "23514",
      constraint: "comments_content_max_length",
    });
  });
});

test("a column added later is returned by every function that returns articles", async () => {
  await content.owner.query("begin");
  await content.owner.query("alter table public.articles add mood text default 'fine'");
  await content.owner.query("select set_config('request.jwt.claims', '{\"sub\":\"1\"}', true)");
  for (const call of [
    "public.search('writes')",
    "public.update_article(1, 'Another title')",
    "public.publish_article(1)",
    "(select (article).* from public.create_article('Five!', '')) as article",
    "(select related.* from public.articles, public.articles_related_articles(articles) as related) as article",
  ]) {
    expect((await content.owner.query(`select mood from ${call}`)).rows[0], call).toEqual({ mood: "fine" });
  }
  await content.owner.query("rollback");
});
