import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { expect, test } from "vitest";
import { launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { expectAccessible } from "../page-layouts.ts";
import { COMPILE_CACHE, type Program, startReady, stopped } from "../program.ts";
import { REPOSITORY } from "../repository.ts";
import { makeProjectFolder } from "../service/cli/project.ts";
import {
  ADA,
  addColumn,
  askWhy,
  cell,
  changeTitle,
  createAda,
  createTable,
  createTasksTable,
  dialog,
  insertRow,
  openPage,
  viewAs,
} from "./first-row-steps.ts";
import { describeInBrowser } from "./studio.ts";

const PLAYGROUND_USER = "Playground user";

/** A playground with an embedded Postgres of its own, and a browser without any stored data. */
type Playground = { readonly program: Program; readonly browser: Browser; close(): Promise<void> };

async function openPlayground(start: () => Promise<Program>, remove: () => Promise<void>): Promise<Playground> {
  const program = await start();
  const browser = await launchBrowser();
  return {
    program,
    browser,
    async close() {
      await browser.close();
      await stopped(program, "SIGTERM");
      await remove();
    },
  };
}

/** Opens a project by `npx content-service init` and `npm run dev`. */
async function openProject(): Promise<Playground & { readonly folder: string }> {
  const project = await makeProjectFolder();
  await project.run("init");
  const { folder } = project;
  const environment = { BASE_SCHEMA: "platform", MIGRATIONS_DIR: join(folder, "db/migrations") };
  const start = () => startReady({ ...environment, DATA_DIR: join(folder, ".data") }, { args: ["--dev"] });
  const playground = await openPlayground(start, async () => project[Symbol.asyncDispose]());
  return { ...playground, folder };
}

/** Opens a clone by `npm start`. */
async function openClone(): Promise<Playground> {
  const folder = await mkdtemp(join(tmpdir(), "playground-"));
  const start = () => startReady({ DATA_DIR: folder, NODE_COMPILE_CACHE: COMPILE_CACHE }, { root: REPOSITORY });
  return openPlayground(start, () => rm(folder, { recursive: true, force: true }));
}

describeInBrowser("the first row in Studio, in a project under npm run dev", () => {
  const playground = useFixture(openProject);

  test("is inserted, edited, seen by a second user, also after a reload, and explained", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/schema");
    await page.getByText(`Acting as ${PLAYGROUND_USER}`).waitFor();
    await createTasksTable(page);
    expect(await readdir(join(playground.folder, "db/migrations/current"))).toContain("0020-create-table-tasks.sql");

    await page.getByRole("button", { name: "Insert row" }).click();
    const insert = dialog(page, "Insert into tasks");
    await insert.getByText(`Default: auth.uid(), which is ${PLAYGROUND_USER}`).waitFor();
    expect(await insert.getByLabel("title · text · required").getAttribute("aria-required")).toBe("true");
    expect(await insert.getByLabel("author_id · bigint", { exact: true }).getAttribute("aria-required")).toBeNull();
    await expectAccessible(page);
    await insert.getByRole("button", { name: "Cancel" }).click();
    await insertRow(page, "tasks", { "title · text · required": "Write a policy" });
    await changeTitle(page, "Write a policy", "Test a policy");

    await createAda(page);
    await page.goto(`${playground.program.url}/studio/tables/public/tasks`);
    await viewAs(page, "ada@example.org");
    await cell(page, 0, "Test a policy").waitFor();
    await page.reload();
    await page.getByText("Viewing as ada@example.org (authenticated)").waitFor();
    await page.getByText("Acting as ada@example.org").waitFor();
    await cell(page, 0, "Test a policy").waitFor();
    await askWhy(page, "Test a policy", "authenticated sees 1 of 1 rows.");
    await page.close();
  });

  test("of a table with own rows is seen by its owner alone", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/schema");
    await createTable(page, "drafts", async (form) => {
      await addColumn(form, 2, "title", "text");
      await form.getByLabel("Template", { exact: true }).selectOption("owner reads and writes");
    });
    await insertRow(page, "drafts", { "title · text · required": "Of the playground" });
    await cell(page, 0, "Of the playground").waitFor();
    await viewAs(page, ADA);
    await page.locator(".grid-empty", { hasText: "No rows." }).waitFor();
    await insertRow(page, "drafts", { "title · text · required": "Of Ada" });
    await cell(page, 0, "Of Ada").waitFor();
    expect(await page.locator(".grid-row:not(.pending)").count()).toBe(1);
    await page.close();
  });

  test("may be of another user, who is chosen by name", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/tables/public/notes");
    await page.getByRole("button", { name: "Insert row" }).click();
    const insert = dialog(page, "Insert into notes");
    await insert.getByLabel("words · text · required").fill("Of Ada.");
    await insert.getByRole("button", { name: "Choose a user for author_id" }).click();
    const picker = dialog(page, "Choose a user for author_id");
    await picker.getByRole("button", { name: "ada@example.org" }).waitFor();
    await expectAccessible(page);
    await picker.getByRole("button", { name: "ada@example.org" }).click();
    await insert.getByText("ada@example.org").waitFor();
    const key = await insert.getByLabel("author_id · bigint", { exact: true }).inputValue();
    await insert.getByRole("button", { name: "Insert", exact: true }).click();
    await insert.waitFor({ state: "detached" });
    await cell(page, 0, "Of Ada.").waitFor();
    await cell(page, 0, key).waitFor();
    expect(key).toMatch(/^\d+$/);
    await page.close();
  });

  test("as a role without a user names the field that lacks one, and what to do", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/tables/public/notes");
    await page.getByRole("button", { name: "View as…" }).click();
    await dialog(page, "View as…").getByRole("button", { name: "authenticated", exact: true }).click();
    await page.getByText("Acting as no user").waitFor();
    await page.getByRole("button", { name: "Insert row" }).click();
    const insert = dialog(page, "Insert into notes");
    await insert.getByLabel("words · text · required").fill("Of nobody.");
    await insert.getByRole("button", { name: "Insert", exact: true }).click();
    await insert.locator(".field", { hasText: "author_id" }).getByText("A user is required.").waitFor();
    await expectAccessible(page);
    await page.close();
  });
});

describeInBrowser("the first row in Studio, in a clone under npm start", () => {
  const playground = useFixture(openClone);

  test("is inserted into the example application, as the user that Studio acts as", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/tables/public/articles");
    await page.getByText(`Acting as ${PLAYGROUND_USER}`).waitFor();
    await insertRow(page, "articles", {
      "title · text · required": "First light",
      "content · text · required": "It works.",
    });
    await cell(page, 0, "First light").waitFor();
    await page.goto(`${playground.program.url}/studio/tables/public/users`);
    await cell(page, 0, PLAYGROUND_USER).waitFor();
    await page.reload();
    await page.getByText(`Acting as ${PLAYGROUND_USER}`).waitFor();
    await cell(page, 0, PLAYGROUND_USER).waitFor();
    expect(await page.locator(".grid-row:not(.pending)").count()).toBe(1);
    await page.close();
  });

  test("is edited, seen by a second user, and explained", async () => {
    const page = await openPage(playground.browser, playground.program.url, "/studio/tables/public/articles");
    await changeTitle(page, "First light", "Second light");
    await createAda(page);
    await page.goto(`${playground.program.url}/studio/tables/public/articles`);
    await viewAs(page, ADA);
    await cell(page, 0, "Second light").waitFor();
    await page.reload();
    await page.getByText(`Viewing as ${ADA} (authenticated)`).waitFor();
    await cell(page, 0, "Second light").waitFor();
    await askWhy(page, "Second light", "authenticated sees 1 of 1 rows.");
    expect(new URL(page.url()).pathname).toBe("/studio/access");
    await page.close();
  });
});
