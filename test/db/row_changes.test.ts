import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { type Ask, rolledBack } from "./rolled-back.ts";

const content = useContent();
const undone = (work: (ask: Ask) => Promise<void>) => rolledBack(content.owner, work);

describe("the triggers of a webhook", () => {
  const WEBHOOK = `insert into api.webhooks (name, table_name, url, role)
    values ('changes', 'comments', 'https://example.com/', 'service_role')`;

  test("are made with it, named after it, and dropped with it", () =>
    undone(async ({ rows, value }) => {
      await rows(WEBHOOK);
      const id = await value("select id from api.webhooks");
      const name = await value(`select content_service.webhook_trigger_name('${id}', 'INSERT')`);
      const triggers =
        "select tgname from pg_trigger where tgfoid = 'content_service.tg__webhook()'::regprocedure order by 1";
      expect(await rows(triggers)).toContainEqual({ tgname: name });
      expect(await value(`select content_service.webhook_table('${id}')::text`)).toBe("comments");
      await rows(`select content_service.drop_webhook_triggers('${id}')`);
      expect(await rows(triggers)).toEqual([]);
      await rows("select content_service.create_webhook_triggers(webhooks) from api.webhooks");
      expect(await rows(triggers)).toHaveLength(3);
      await rows("delete from api.webhooks");
      expect(await rows(triggers)).toEqual([]);
    }));

  test("check the table and the role, and follow a change of the table", () =>
    undone(async ({ rows, value, refusal }) => {
      await rows(WEBHOOK);
      expect(
        await rows(
          "select tgfoid::regproc::text as name from pg_trigger where tgrelid = 'api.webhooks'::regclass and not tgisinternal order by tgname",
        ),
      ).toEqual([{ name: "content_service.tg_webhooks__check" }, { name: "content_service.tg_webhooks__capture" }]);
      expect(await refusal("update api.webhooks set table_name = 'content_service.tasks'")).toBe("WRONG");
      expect(await refusal("update api.webhooks set role = 'postgres'")).toBe("WRONG");
      await rows("update api.webhooks set table_name = 'articles'");
      expect(await value("select content_service.webhook_table(id)::text from api.webhooks")).toBe("articles");
    }));

  test("have the key of a row, in parts if the row has several, and leave large values out", () =>
    undone(async ({ rows, value }) => {
      expect(await value(`select content_service.row_key('{"id": 7, "b": 1}', '{id}')`)).toBe("7");
      const several = await value(`select content_service.row_key('{"a": 1, "b": 2}', '{a,b}')`);
      expect(several).toBe(await value(`select content_service.composite_key('{"a": 1, "b": 2}', '{a,b}')`));
      expect(several).not.toBe(await value(`select content_service.composite_key('{"a": 2, "b": 1}', '{a,b}')`));
      await rows(
        "insert into public.articles (title, content, author_id) values ('Long text', repeat('x', 900000), 1)",
      );
      const large = (await value("select content_service.large_row(articles, '{id}') from public.articles")) as object;
      expect(large).toMatchObject({ id: expect.anything() });
      await rows("create table public.parts (id int primary key) partition by list (id)");
      const inHierarchy = (table: string) => value(`select content_service.is_in_hierarchy('${table}'::regclass)`);
      expect([await inHierarchy("public.parts"), await inHierarchy("public.comments")]).toEqual([true, false]);
    }));
});

describe("event triggers", () => {
  const functionOf =
    "select evtname as name, evtfoid::regproc::text as function from pg_event_trigger order by evtname";

  test("notify of changes of the schema, and publish a new table that may be served", () =>
    undone(async ({ rows, value }) => {
      expect(await rows(functionOf)).toEqual([
        { name: "content_service_log_whole_rows", function: "content_service.tg__log_whole_rows" },
        { name: "content_service_publish_rows", function: "content_service.tg__publish_rows" },
        { name: "content_service_schema_changed", function: "content_service.tg__schema_changed" },
        { name: "content_service_schema_dropped", function: "content_service.tg__schema_changed" },
      ]);
      await rows(
        "create table public.likes (id int primary key); create table content_service.kept (id int primary key)",
      );
      const published =
        "select tablename from pg_publication_tables where pubname = 'supabase_realtime' and tablename in ('likes', 'kept')";
      expect(await rows(published)).toEqual([{ tablename: "likes" }]);
      expect(await value("select relreplident from pg_class where oid = 'public.likes'::regclass")).toBe("f");
      const isServed = (table: string) =>
        value(`select content_service.is_served(class) from pg_class as class where oid = '${table}'::regclass`);
      expect([
        await isServed("public.likes"),
        await isServed("auth.users"),
        await isServed("content_service.kept"),
      ]).toEqual([true, false, false]);
      await rows("select content_service.keep_writable('public.likes')");
      expect(await value("select relreplident from pg_class where oid = 'public.likes'::regclass")).toBe("f");
    }));
});

describe("articles", () => {
  const ARTICLES = `
    insert into public.articles (title, content, author_id, status, tags) values
      ('Orchards in June', 'About roses', 1, 'PUBLISHED', '{verdant,estival}'),
      ('Kitchens', 'About 100% of orchards', 2, 'PUBLISHED', '{verdant}'),
      ('Old books', 'About paper', 3, 'PUBLISHED', '{}');
    insert into public.article_translations (article_id, language, title) select id, 'de', 'Gärten im Juni' from public.articles where title = 'Orchards in June'`;

  test("are found by what they contain, those with the word in the title first", () =>
    undone(async ({ rows, value }) => {
      await rows(ARTICLES);
      const first = Number(await value("select id from public.articles where title = 'Orchards in June'"));
      const ids = async (call: string) =>
        (await rows(`select * from ${call} as id`)).map(({ id }) => Number(id) - first);
      expect((await ids("api.matching_articles('orchard')")).sort()).toEqual([0, 1]);
      expect(await ids("api.search_articles('orchard')")).toEqual([0, 1]);
      expect(await ids("api.search_articles('100%')")).toEqual([1]);
      expect(await ids(`api.related_articles(${first}, '{verdant,estival}', 5)`)).toEqual([1]);
      expect(await value(`select api.translated_title(${first}, 'de')`)).toBe("Gärten im Juni");
      expect(await value(`select api.translated_title(${first}, 'fr')`)).toBeNull();
    }));

  test("are indexed as text and as a document; wildcards of a keyword are letters", () =>
    undone(async ({ value }) => {
      expect(await value("select content_service.containing('50%_')")).toBe("%50\\%\\_%");
      expect(await value("select content_service.article_text('Title', '{a,b}', 'Text')")).toBe("Title\na\nb\nText");
      expect(
        await value(
          "select content_service.article_document('Title', '{tag}', 'text') @@ 'title:A & tag:B & text:C'::tsquery",
        ),
      ).toBe(true);
    }));
});
