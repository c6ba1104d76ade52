import type { Page } from "playwright-core";
import { test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const ROWS = `
  insert into public.users (name, email) select 'User ' || i, 'user' || i || '@example.org' from generate_series(1, 5) i;
  insert into public.articles (title, content, status, author_id)
    select 'Article <b>' || i || '</b>', repeat('text ', i * 20), 'PUBLISHED', (select min(id) from public.users)
    from generate_series(1, 40) i;
  insert into storage.buckets (id, name) values ('pictures', 'pictures');
  insert into storage.objects (bucket_id, name) values ('pictures', 'a/cat.png'), ('pictures', 'a/b/dog.png');
  insert into public.comments (article_id, author_id, content)
    select id, author_id, 'A comment.' from public.articles limit 5;`;

const press = (button: string, found: string) => async (page: Page) => {
  await page.getByRole("button", { name: button, exact: true }).first().click();
  await page.locator(found).first().waitFor();
};

type Visit = { readonly path: string; readonly act?: (page: Page) => Promise<void> };

const VISITS: Readonly<Record<string, Visit>> = {
  "the list of tables": { path: "tables" },
  "the addresses of the APIs": { path: "tables", act: press("APIs", "dialog") },
  "the rows of a table": { path: "tables/public/articles" },
  "the filters of a table": { path: "tables/public/articles", act: press("Filter", "[role=grid]") },
  "the views of a table": { path: "tables/public/articles", act: press("Views", "dialog form") },
  "the form of a new row": { path: "tables/public/articles", act: press("Insert row", "dialog") },
  "the SQL editor": { path: "sql" },
  "the list of objects": { path: "schema" },
  "the diagram": { path: "schema/diagram" },
  "the details of a table": { path: "schema/table/public/articles" },
  "the form of a new table": { path: "schema", act: press("New table", "dialog") },
  "the matrix of policies": { path: "access", act: press("Try all commands", "table") },
  "the explanation of hidden rows": { path: "access?tab=why" },
  "the problems that were found": { path: "access?tab=doctor" },
  "the buckets": { path: "files" },
  "the files of a folder": { path: "files/pictures/a" },
  "the users": { path: "people" },
  "the API keys": { path: "people/keys" },
  "the audit log": { path: "people/audit" },
  "the settings of sign-in": { path: "people/settings" },
  "a channel": { path: "running/channel" },
  "the form of a webhook": { path: "running", act: press("New webhook", "dialog .form-grid") },
  "what runs": { path: "running" },
  "pending and applied migrations": { path: "changes" },
  "a rehearsal": { path: "changes?tab=rehearsal", act: press("Rehearse", ".changes-list, .empty") },
  "the branches": { path: "changes?tab=branches" },
};

describeInBrowser("Studio", () => {
  const studio = useFixture(() => openStudio({ schema: ROWS, path: "/studio/nowhere" }));

  test.each(Object.entries(VISITS))(
    "shows %s accessibly on a phone and on a large screen, light and dark",
    async (name, visit) => {
      const { page } = studio;
      await page.goto(`${studio.service.url}/studio/${visit.path}`);
      await page.setViewportSize({ width: 1440, height: 900 });
      await page.locator("#content h1").first().waitFor();
      await page.locator("#content .loading").waitFor({ state: "detached" });
      await visit.act?.(page);
      await expectAccessibleLayouts(page, name);
    },
  );
});
