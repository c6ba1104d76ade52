import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchBrowser } from "../chromium.ts";
import { pasteInto } from "../graphiql.ts";
import { startReady, stopped } from "../program.ts";
import { REPOSITORY } from "../repository.ts";
import { ADDRESS, readFiveMinutes } from "./five-minutes.ts";
import { linesUntil } from "./lines-until.ts";
import { takePageSheets } from "./page-sheets.ts";
import { signInAda } from "./sign-in-ada.ts";
import { openTerminal } from "./terminal.ts";

// Takes the pictures of the documentation, in docs/pictures: `node_modules/.bin/node test/docs/take-pictures.ts`.

const PICTURES = join(REPOSITORY, "docs/pictures");

const DESKTOP: BrowserContextOptions = { viewport: { width: 1200, height: 800 }, colorScheme: "light" };

const WRITINGS = [
  ["Tables are the API", "Granted tables are served: no resolvers, controllers or routes."],
  ["Policies in plain SQL", "A row is visible if a policy allows it."],
] as const;

const QUERY = `{
  articles(first: 5) {
    totalCount
    edges {
      node {
        title
        status
        author { name }
      }
    }
  }
}`;

const folder = await mkdtemp(join(tmpdir(), "content-service-pictures-"));
const environment = {
  PATH: `${REPOSITORY}/node_modules/.bin:${process.env.PATH}`,
  DATA_DIR: join(folder, "data"),
  // The address that pages show; the service uses a free port.
  PUBLIC_URL: ADDRESS,
};
await mkdir(PICTURES, { recursive: true });
const service = await startReady(environment);
const terminal = openTerminal({ folder: REPOSITORY, environment });
const browser = await launchBrowser();
try {
  const steps = readFiveMinutes(await readFile(join(REPOSITORY, "README.md"), "utf8"));
  const atService = (text: string) => text.replaceAll(ADDRESS, service.url);
  await terminal.run(atService(steps.signIn));
  await terminal.run(atService(steps.write));
  for (const [title, content] of WRITINGS) {
    const values = `(1, '${title}', '${content}', 'PUBLISHED')`;
    await terminal.run(`npm run sql -- "insert into articles (author_id, title, content, status) values ${values}"`);
  }
  const key = (await terminal.run("npm run --silent keys -- --anon")).output.trim();

  await takeStartPage(browser);
  await takeStudio(browser);
  await takeGraphiql(browser);
  await takeReference(browser);
  await takeSignIn(browser);
  await takeAccount(browser);
  await takeExample(browser, key);
  await takePageSheets(browser, service.url, PICTURES);
} finally {
  await browser.close();
  await terminal.close();
  await stopped(service, "SIGINT");
  await rm(folder, { recursive: true, force: true });
}

async function opened(browser: Browser, address: string, options: BrowserContextOptions): Promise<Page> {
  const page = await (await browser.newContext(options)).newPage();
  await page.goto(address);
  return page;
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(PICTURES, `${name}.png`), animations: "disabled", caret: "hide" });
  await page.context().close();
}

async function takeStartPage(browser: Browser): Promise<void> {
  const page = await opened(browser, service.url, { ...DESKTOP, viewport: { width: 1200, height: 1360 } });
  await page.getByText("articles", { exact: true }).click();
  await page.evaluate("scrollTo(0, 0)");
  await shoot(page, "start-page");
}

async function takeStudio(browser: Browser): Promise<void> {
  const page = await opened(browser, `${service.url}/studio/tables/public/articles`, DESKTOP);
  await page.getByRole("gridcell").nth(8).waitFor();
  await shoot(page, "studio");
}

async function takeGraphiql(browser: Browser): Promise<void> {
  const permissions = ["clipboard-read", "clipboard-write"];
  const page = await opened(browser, `${service.url}/graphiql`, { ...DESKTOP, permissions });
  await page.waitForSelector(".graphiql-execute-button");
  await pasteInto(page, ".graphiql-query-editor", QUERY);
  // Closes the list of completions.
  await page.keyboard.press("Escape");
  await page.click(".graphiql-execute-button");
  await page.locator(".result-window .CodeMirror-code").getByText("totalCount").waitFor();
  await shoot(page, "graphiql");
}

async function takeReference(browser: Browser): Promise<void> {
  const page = await opened(browser, `${service.url}/docs`, DESKTOP);
  await page.waitForSelector(".operation");
  await shoot(page, "reference");
}

async function takeSignIn(browser: Browser): Promise<void> {
  const page = await opened(browser, `${service.url}/auth/sign-in`, DESKTOP);
  await shoot(page, "sign-in");
}

async function takeAccount(browser: Browser): Promise<void> {
  const page = await (await browser.newContext(DESKTOP)).newPage();
  await signInAda(page, service.url);
  await shoot(page, "account");
}

async function takeExample(browser: Browser, key: string): Promise<void> {
  const example = spawn(process.execPath, ["examples/articles/server.ts"], {
    cwd: REPOSITORY,
    env: { SERVICE_URL: service.url, ANON_KEY: key, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [address] = await linesUntil(example, /^http/);
    const page = await opened(browser, address!, DESKTOP);
    await page.getByLabel("E-mail").fill("ada@example.org");
    await page.getByLabel("Password").fill("Tangerine-Boat-7");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Signed in as Ada").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await shoot(page, "example");
  } finally {
    example.kill();
  }
}
