import { createClient } from "@supabase/supabase-js";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { describeInBrowser, launchBrowser } from "../../browser.ts";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve, useService } from "../../serve.ts";

const database = useDatabase();
const service = useService({ database, settings: { GRAPHQL_PRELOAD: "on" } });

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
const toText = (html: string) => html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!);

const ODD_ROW = { id: 1, "first name": "Ada", "last,first": "King", "born (year)": 1815 };
const ODD_NAMES = `
  create table public."odd, things" (id int primary key, "first name" text, "last,first" text, "born (year)" int);
  insert into public."odd, things" values (1, 'Ada', 'King', 1815);
  grant select on public."odd, things" to anon;
`;

async function startPage(url: string) {
  const response = await fetch(`${url}/`);
  return { response, html: await response.text() };
}

/** Returns the samples by the table that they are for. */
function samplesIn(html: string): Map<string, string[]> {
  const tables = [...html.matchAll(/<details><summary>(.*?)<\/summary>(.*?)<\/details>/gs)];
  return new Map(
    tables.map(([, name, inside]) => [
      name!,
      [...inside!.matchAll(/<pre tabindex="0"><code>(.*?)<\/code><\/pre>/gs)].map(([, sample]) => toText(sample!)),
    ]),
  );
}

describe("the start page", () => {
  test("has links to the pages of this deployment, all of which exist", async () => {
    const { response, html } = await startPage(service.url);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(html).toContain("healthy");
    const links = [...html.matchAll(/<li>\s*<a href="([^"]+)"/g)].map(([, path]) => path!);
    expect(links).toEqual(["/studio", "/graphiql", "/docs", "/docs/guide", "/docs/errors", "/auth/sign-in", "/users"]);
    for (const path of links) expect((await fetch(service.url + path)).status, path).toBe(200);
  });

  test("loads nothing, and runs only its own scripts", async () => {
    const { response, html } = await startPage(service.url);
    expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none';.*script-src 'sha256-/);
    expect(html).not.toMatch(/<(script|img|iframe)[^>]* src=|<link[^>]* href="(?!data:)/);
  });

  test("has working requests for every table that anonymous callers may read", async () => {
    const { html } = await startPage(service.url);
    const samples = samplesIn(html);
    expect([...samples.keys()]).toEqual(["article_translations", "articles", "comments", "users"]);
    for (const [table, [curl, program, query]] of samples) {
      const [, key, address] = /apikey: (\S+)" \\\n {2}"(\S+)"$/.exec(curl!)!;
      const rows = await fetch(address!, { headers: { apikey: key! } });
      expect([table, rows.status]).toEqual([table, 200]);
      expect(program).toContain(`supabase.from("${table}")`);
      // Comments are reached by their article alone.
      if (table === "comments") continue;
      const answer = await fetch(`${service.url}/graphql`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ query }),
      });
      expect(await answer.json()).not.toHaveProperty("errors");
    }
  });

  test("requests columns with unusual names, too", async () => {
    const odd = await cloneDatabase("empty");
    await withClient(odd.ownerUrl, (client) => client.query(ODD_NAMES));
    const foreign = await serve(odd, {});
    try {
      const [curl, program] = samplesIn((await startPage(foreign.url)).html).get("odd, things")!;
      const [, key, address] = /apikey: (\S+)" \\\n {2}"(\S+)"$/.exec(curl!)!;
      const rows = await fetch(address!, { headers: { apikey: key! } });
      expect(await rows.json()).toEqual([ODD_ROW]);

      const [, select] = /\.select\((.*)\)\.limit/.exec(program!)!;
      const { data } = await createClient(foreign.url, key!).from("odd, things").select(JSON.parse(select!));
      expect(data).toEqual([ODD_ROW]);
    } finally {
      await foreign.stop();
      await odd.drop();
    }
  });

  test("has no links to missing routes: a database without users has no link to them", async () => {
    expect((await startPage(service.url)).html).toContain('href="/users"');
    const empty = await cloneDatabase("empty");
    const foreign = await serve(empty, {});
    try {
      const { html } = await startPage(foreign.url);
      expect(html).toContain('href="/docs"');
      expect(html).not.toContain('href="/users"');
    } finally {
      await foreign.stop();
      await empty.drop();
    }
  });

  test("omits the key in production, and the tables if OpenAPI is disabled", async () => {
    const settings = { NODE_ENV: "production", PGRST_OPENAPI_MODE: "disabled" };
    const closed = await serve(database, settings);
    try {
      const { html } = await startPage(closed.url);
      expect(html).not.toMatch(/eyJ|<summary>/);
      expect(html).toContain("npm run keys");
    } finally {
      await closed.stop();
    }
  });
});

describe("/docs/errors", () => {
  test("has the anchor that an error body links to", async () => {
    const refused = await fetch(`${service.url}/users/nobody`);
    const { error } = (await refused.json()) as { error: { code: string; documentation: string } };
    const [path, anchor] = error.documentation.split("#");
    const html = await (await fetch(service.url + path)).text();
    expect(anchor).toBe("INVALID_ID");
    expect(html).toContain(`id="${anchor}"`);
    expect(html).toContain("<code>extensions.code</code>");
    expect(html).toContain("send <code>Idempotency-Key</code> with each write");
  });

  test("has no links to pages of the repository, which the service does not serve", async () => {
    const html = await (await fetch(`${service.url}/docs/errors`)).text();
    expect(html).not.toMatch(/\]\(|\.md/);
  });
});

describeInBrowser("/docs/errors on a phone", () => {
  const browser = useFixture(launchBrowser);

  test("is read without scrolling sideways", async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, isMobile: true });
    await page.goto(`${service.url}/docs/errors#RATE_LIMITED`);
    const overhang = await page.$$eval(".scroll", (all) => all.map((one) => one.scrollWidth - one.clientWidth));
    expect(overhang).toEqual([0, 0, 0]);
    expect(await page.locator("#RATE_LIMITED td").last().isVisible()).toBe(true);
  });
});
