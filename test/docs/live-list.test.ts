import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import type { Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useClient, useDatabase } from "../database.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";
import { ADDRESS } from "./five-minutes.ts";

const FILE = /^```jsx? (\S+)\n(.*?)^```$/gms;
const TABLE = "templates/blank/db/migrations/current/0010-notes.sql";
const PAGES = ["docs/guides/live-list.md", "docs/live-data.md"];
const PROGRAMS = ["plain.js", "render-LiveList.jsx", "render-LiveNotes.jsx"];
const TWO_LISTS = "render-two-lists.jsx";
/** In development, React's strict mode mounts each component twice. */
const rendering = (component: string, count = 1) => `
  import { createElement, StrictMode } from "react";
  import { createRoot } from "react-dom/client";
  import { ${component} } from "./${component}.jsx";
  createRoot(document.getElementById("root")).render(createElement(StrictMode, null, ${`createElement(${component}), `.repeat(count)}));`;

describeInBrowser("the lists of the pages that stay up to date", () => {
  let site: Server;

  const folder = useFolder("content-service-live-list-");
  const database = useDatabase({ template: "platform" });
  const owner = useClient(database.ownerUrl);
  beforeAll(async () => {
    await owner.query(await readFile(join(REPOSITORY, TABLE), "utf8"));
  });
  const service = useService({ database, settings: { BASE_SCHEMA: "platform" } });
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    await symlink(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
    for (const component of ["LiveList", "LiveNotes"])
      await writeFile(join(folder, `render-${component}.jsx`), rendering(component));
    await writeFile(join(folder, TWO_LISTS), rendering("LiveList", 2));
    const pages = await Promise.all(PAGES.map((page) => readFile(join(REPOSITORY, page), "utf8")));
    for (const [, name, text] of pages.join("\n").matchAll(FILE)) {
      const code = text!.replaceAll(ADDRESS, service.url).replace("eyJ…", jwt.sign({ role: "anon" }, SECRET));
      await writeFile(join(folder, name!), code);
    }
    const scripts = new Map<string, string>(
      await Promise.all([...PROGRAMS, TWO_LISTS].map(async (file) => [`/${file}`, await bundle(file)] as const)),
    );
    site = createServer(({ url }, response) => {
      const [path, file] = url!.split("?");
      const html = `<!doctype html><title>List</title><div id="root"><ul id="list"></ul></div><script type="module" src="/${file}"></script>`;
      response.setHeader("Content-Type", scripts.has(path!) ? "text/javascript" : "text/html");
      response.end(scripts.get(path!) ?? html);
    }).listen(0, "127.0.0.1");
    await once(site, "listening");
  });
  afterAll(() => void site.close());

  async function bundle(file: string): Promise<string> {
    const build = await rolldown({
      input: join(folder, file),
      platform: "browser",
      transform: { define: { "process.env.NODE_ENV": '"development"' } },
      resolve: { symlinks: false },
      logLevel: "silent",
    });
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    await build.close();
    return output[0].code;
  }

  async function openPage(file: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/?${file}`);
    return page;
  }

  const expectShown = (page: Page, words: string[]) =>
    expect.poll(() => page.locator("li").allTextContents()).toEqual(words);

  test("shows two lists of a table on one page", async () => {
    await owner.query("truncate public.notes");
    await owner.query("insert into public.notes (author_id, words, is_public) values (1, 'One', true)");
    const page = await openPage(TWO_LISTS);
    await expectShown(page, ["One", "One"]);
    await owner.query("insert into public.notes (author_id, words, is_public) values (1, 'Two', true)");
    await expectShown(page, ["One", "Two", "One", "Two"]);
    await page.context().close();
  });

  test("shows why a live query is refused", async () => {
    await owner.query("revoke select on public.notes from anon");
    try {
      const page = await openPage("render-LiveNotes.jsx");
      await expect.poll(() => page.getByRole("alert").allTextContents()).toEqual(["permission denied for table notes"]);
      await page.context().close();
    } finally {
      await owner.query("grant select on public.notes to anon");
    }
  });

  test.each(PROGRAMS)("shows in %s what is inserted, hidden, revealed and deleted", async (file) => {
    await owner.query("truncate public.notes");
    await owner.query(
      "insert into public.notes (author_id, words, is_public) values (1, 'One', true), (1, 'Two', false)",
    );
    const page = await openPage(file);
    await expectShown(page, ["One"]);
    await owner.query("insert into public.notes (author_id, words, is_public) values (1, 'Three', true)");
    await expectShown(page, ["One", "Three"]);
    await owner.query("update public.notes set is_public = not is_public where words in ('One', 'Two')");
    await expectShown(page, ["Two", "Three"]);
    await owner.query("delete from public.notes where words = 'Three'");
    await expectShown(page, ["Two"]);
    await page.context().close();
  });
});
