import { describe, expect, test } from "vitest";
import { alice, anonymous } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();

async function found(keyword: string): Promise<unknown[]> {
  return (await content.as(anonymous, "select title from public.search($1)", [keyword])).map(({ title }) => title);
}

describe("search", () => {
  test.each([
    ["a word of the title", "writes", ["Bob writes", "Alice writes"]],
    ["in any case", "ALICE", ["Alice writes"]],
    ["a word of the content", "gardens", ["Alice writes"]],
    ["a tag", "boat", ["Bob writes"]],
    ["a part of a word", "arden", ["Alice writes"]],
    ["two words that stand apart", "alice gardens", ["Alice writes"]],
    ["punctuation around a word", "  boats. ", ["Bob writes"]],
    ["nothing", "submarine", []],
    ["an empty keyword", "", []],
    ["blanks", "  ", []],
    ["signs of patterns, literally", "%", []],
    ["an underscore, literally", "Alice_write", []],
    ["a backslash", "\\", []],
    ["operators of search engines, as words", "-boats", ["Bob writes"]],
    ["quotes and brackets", "'; drop table articles; --", []],
  ])("finds %s", async (_, keyword, titles) => {
    expect((await found(keyword)).sort()).toEqual([...titles].sort());
  });

  test("ranks a hit in the title before one in the tags before one in the content, and the newest first among equals", async () => {
    await content.owner.query(`
      insert into public.articles (title, content, author_id, tags, created_at) values
        ('First of all', 'The zebra is striped.', 1, '{}', '2020-01-01'),
        ('Second one', 'Nothing.', 1, '{zebra}', '2020-01-02'),
        ('About a zebra', 'Nothing.', 1, '{}', '2020-01-03'),
        ('A zebra again', 'Nothing.', 1, '{}', '2020-01-04'),
        ('Fifth of all', 'Zebra, zebra, zebra.', 1, '{}', '2019-01-01')
    `);
    expect(await found("zebra")).toEqual([
      "A zebra again",
      "About a zebra",
      "Second one",
      "Fifth of all",
      "First of all",
    ]);
    await content.owner.query("delete from public.articles where created_at < '2021-01-01'");
  });

  test("finds languages written without spaces", async () => {
    await content.owner.query(
      "insert into public.articles (title, content, author_id) values ('关于数据库的文章', '', 1)",
    );
    expect(await found("数据库")).toEqual(["关于数据库的文章"]);
    await content.owner.query("delete from public.articles where title like '关于%'");
  });

  test("accepts the longest texts and keywords of any length", async () => {
    const words = "array_to_string(array(select md5(n::text) from generate_series(1, 30000) as n), ' ')";
    await content.owner.query(`
      insert into public.articles (title, content, author_id) values
        (repeat('z', 300), repeat('z', 1000000), 1), ('Words', ${words}, 1)
    `);
    expect(await found("zzzz")).toHaveLength(1);
    expect(await found("cfcd208495d565ef66e7dff9f98764da 6512bd43d9caa6e02c990b0a82652dca")).toEqual([]);
    expect(await found("c4ca4238a0b923820dcc509a6f75849b 6512bd43d9caa6e02c990b0a82652dca")).toHaveLength(1);
    expect(await found("boats at sea ".repeat(100_000))).toEqual([]);
    expect(await found("z".repeat(1_000_000))).toHaveLength(1);
    await content.owner.query("delete from public.articles where length(content) > 900000");
  });

  test("returns a thousand rows at most; a filter misses none", async () => {
    await content.owner.query(`
      insert into public.articles (title, content, author_id)
        select 'Kiwi ' || n, '', 1 + (n > 1000)::integer from generate_series(1, 1200) as n
    `);
    expect(await found("kiwi")).toHaveLength(1000);
    expect(
      await content.as(anonymous, "select from public.articles_matching('kiwi') where author_id = 2"),
    ).toHaveLength(200);
    await content.owner.query("delete from public.articles where title like 'Kiwi %'");
  });

  test("uses both indexes", async () => {
    await content.owner.query(`
      insert into public.articles (title, content, author_id)
        select 'Article ' || n, md5(n::text), 1 from generate_series(1, 2000) as n;
      analyze public.articles;
    `);
    await content.as(alice, "select from public.search('needle haystack')");
    await content.requests.query("select pg_stat_force_next_flush()");
    const { rows } = await content.owner.query(
      "select indexrelname as index from pg_stat_user_indexes where indexrelname in ('articles_text', 'articles_document') and idx_scan > 0 order by 1",
    );
    expect(rows).toEqual([{ index: "articles_document" }, { index: "articles_text" }]);
  });
});
