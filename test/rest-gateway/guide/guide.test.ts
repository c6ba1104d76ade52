import { request } from "node:http";
import type { BrowserContextOptions } from "playwright-core";
import { describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../browser.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { expectAccessible } from "../../page-layouts.ts";
import { repositoryFiles } from "../../repository.ts";
import { serve, useService } from "../../serve.ts";

const GUIDE = "/docs/guide";

const database = useDatabase();
const service = useService({ database });

async function read(path: string): Promise<string> {
  const response = await fetch(service.url + path);
  expect([path, response.status]).toEqual([path, 200]);
  return response.text();
}

const targetsIn = (html: string) =>
  [...html.matchAll(/<(?:a|img|script)[^>]* (?:href|src)="([^"]+)"/g)].map(([, target]) => target!);
const anchorsIn = (html: string) => new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));

describe("/docs/guide", () => {
  test("lists every page of docs/", async () => {
    const linked = new Set(targetsIn(await read(GUIDE)));
    const files = repositoryFiles("docs/*.md").filter((file) => !/README\.md$|^docs\/reference\//.test(file));
    const pages = files.map((file) => `${GUIDE}/${file.slice("docs/".length, -".md".length)}`);
    expect(pages.length).toBeGreaterThan(25);
    expect(pages.filter((page) => !linked.has(page))).toEqual([]);
  });

  test("has no broken link: pages, anchors, pictures, scripts, and other paths of the service", async () => {
    const pages = new Map<string, Promise<string>>();
    const found: { from: string; path: string; anchor: string | undefined }[] = [];
    const visit = async (page: string): Promise<void> => {
      const html = pages.get(page)!;
      for (const target of targetsIn(await html)) {
        const { origin, pathname, hash } = new URL(target, service.url + page);
        if (origin !== service.url) continue;
        found.push({ from: page, path: pathname, anchor: hash === "" ? undefined : decodeURIComponent(hash.slice(1)) });
        if (pages.has(pathname)) continue;
        pages.set(pathname, read(pathname));
        if (pathname.startsWith(GUIDE)) await visit(pathname);
      }
    };
    pages.set(GUIDE, read(GUIDE));
    await visit(GUIDE);

    await Promise.all(pages.values());
    expect(pages.size).toBeGreaterThan(35);
    const broken: object[] = [];
    for (const link of found) {
      if (link.anchor !== undefined && !anchorsIn(await pages.get(link.path)!).has(link.anchor)) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  test("is sent again only when it has changed", async () => {
    for (const path of [GUIDE, `${GUIDE}/graphql`, `${GUIDE}/copy-buttons.js`, `${GUIDE}/pictures/start-page.png`]) {
      const first = await fetch(service.url + path);
      expect([path, first.status]).toEqual([path, 200]);
      const again = await fetch(service.url + path, { headers: { "If-None-Match": first.headers.get("etag")! } });
      expect([path, again.status]).toEqual([path, 304]);
    }
  });

  test("loads only files of this service, and runs no inline script", async () => {
    const response = await fetch(`${service.url}${GUIDE}/readme`);
    expect(response.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[^;]+; form-action 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; /,
    );
    const html = await response.text();
    expect(html).toMatch(/<script src="\/docs\/guide\/search-field.js">/);
    expect(html).not.toMatch(/<script>|<(img|script|link)[^>]* (src|href)="https?:/);
  });

  test("answers other paths with 404, and other methods with 405", async () => {
    for (const path of ["/none", "/pictures/none.png", "/README.md", "/pictures/%2e%2e%2ferrors.md"]) {
      expect([path, (await fetch(service.url + GUIDE + path)).status]).toEqual([path, 404]);
    }
    // fetch would resolve the dots.
    const status = await new Promise((resolve, reject) => {
      const sent = request(service.url, { path: `${GUIDE}/pictures/../../package.json` });
      sent.on("response", (response) => resolve(response.resume().statusCode)).on("error", reject);
      sent.end();
    });
    expect(status).toBe(404);
    const refused = await fetch(service.url + GUIDE, { method: "POST" });
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });
});

describe("the search of the guide", () => {
  const search = async (query: string) => {
    const html = await read(`${GUIDE}/search?${new URLSearchParams({ q: query })}`);
    return [...html.matchAll(/<li>\s*<a href="([^"]+)">[^<]*<\/a>\s*<p>/g)].map(([, target]) => target!);
  };

  test("finds sections by all words of the query, those with the words in headings first", async () => {
    expect((await search("row filter realtime"))[0]).toMatch(/^\/docs\/guide\/realtime/);
    expect((await search("name conflicts")).slice(0, 2)).toContain(`${GUIDE}/graphql#name-conflicts`);
    expect((await search("PGRST_JWT_ROLE_CLAIM_KEY"))[0]).toBe(`${GUIDE}/settings#pgrst_jwt_role_claim_key`);
    expect(await search("cursor nonexistentword")).toEqual([]);
    expect(await search("  ")).toEqual([]);
  });

  test("shows the query as text, and reads signs of regular expressions as they are", async () => {
    const query = `"><script>alert(1)</script>`;
    expect(await read(`${GUIDE}/search?${new URLSearchParams({ q: query })}`)).not.toContain("<script>alert");
    expect(await search("(.*)+$ [")).toEqual([]);
    expect((await search("/rest/v1")).length).toBeGreaterThan(3);
  });
});

describe("the rate limit", () => {
  test("counts searches, and no pages", async () => {
    const limited = await serve(database, { RATE_LIMIT: "2" });
    try {
      const statuses = async (path: string) => {
        const all: number[] = [];
        for (let count = 0; count < 3; count += 1) all.push((await fetch(limited.url + path)).status);
        return all;
      };
      expect(await statuses(`${GUIDE}/rest`)).toEqual([200, 200, 200]);
      expect(await statuses(`${GUIDE}/search-field.js`)).toEqual([200, 200, 200]);
      expect(await statuses(`${GUIDE}/search?q=cursor`)).toEqual([200, 200, 429]);
      expect(await statuses(`${GUIDE}/search/?q=cursor`)).toEqual([429, 429, 429]);
    } finally {
      await limited.stop();
    }
  });
});

describeInBrowser("the guide in a browser", () => {
  const browser = useFixture(launchBrowser);

  const open = async (path: string, options: BrowserContextOptions) => {
    const page = await (await browser.newContext(options)).newPage();
    await page.goto(service.url + path);
    return page;
  };

  test("shows results while a query is typed, and without JavaScript after it is sent", async () => {
    for (const javaScriptEnabled of [true, false]) {
      const page = await open(`${GUIDE}/limits`, { javaScriptEnabled });
      const box = page.getByRole("searchbox", { name: "Search the guide" });
      await box.fill("name conflicts");
      if (!javaScriptEnabled) await box.press("Enter");
      await page.getByRole("link", { name: "GraphQL › Name conflicts" }).click();
      await expect.poll(() => page.url()).toContain(`${GUIDE}/graphql#name-conflicts`);
      await page.context().close();
    }
  });

  test("has a copy button beside each sample, which copies it with the address of this service", async () => {
    const page = await open(`${GUIDE}/front-end-guide`, { permissions: ["clipboard-read", "clipboard-write"] });
    const sample = page.locator("figure", { hasText: "session.ts" }).first();
    expect(await sample.locator(".keyword").first().textContent()).toBe("export");
    await sample.getByRole("button", { name: "Copy" }).click();
    await sample.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate("navigator.clipboard.readText()");
    expect(copied).toContain(`export const SERVICE = "${service.url}";\n`);
    await page.context().close();
  });

  test("has no copy button beside an output", async () => {
    const page = await open(`${GUIDE}/tutorial/first-project`, {});
    const [samples, outputs] = [page.locator("main pre"), page.locator("main pre.output")];
    const buttons = page.getByRole("button", { name: "Copy" });
    expect(await outputs.count()).toBeGreaterThan(0);
    expect(await buttons.count()).toBe((await samples.count()) - (await outputs.count()));
    await page.context().close();
  });

  test("has the outline of a page beside the text in a wide window, and folded above it in others", async () => {
    for (const [width, isBeside] of [
      [1400, true],
      [1000, false],
    ] as const) {
      const page = await open(`${GUIDE}/limits`, { viewport: { width, height: 850 } });
      expect(await page.getByRole("navigation", { name: "On this page" }).isVisible()).toBe(isBeside);
      expect(await page.getByText("On this page").and(page.locator("summary")).isVisible()).toBe(!isBeside);
      await page.context().close();
    }
  });

  test.each([390, 1400])("is accessible and does not scroll sideways at %i px, light and dark", async (width) => {
    for (const path of ["", "/readme", "/settings", "/front-end-guide", "/search?q=timeout"]) {
      const page = await open(GUIDE + path, { viewport: { width, height: 850 } });
      const lines = await page.evaluate(`(() => {
        const range = document.createRange();
        range.selectNodeContents(document.querySelector("form[role=search] button"));
        return range.getClientRects().length;
      })()`);
      expect(lines, "lines of the search button's text").toBe(1);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        await expectAccessible(page);
      }
      await page.context().close();
    }
  });
});
