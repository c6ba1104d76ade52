import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { type GraphQLService, serveGraphQL, tokenFor } from "../graphql.ts";

describeInBrowser("/docs in a browser", () => {
  let service: GraphQLService;
  let browser: Browser;
  let page: Page;
  let origin: string;
  const complaints: string[] = [];
  beforeAll(async () => {
    service = await serveGraphQL({
      before: "insert into public.users (name, email) values ('Ann', 'ann@example.org')",
    });
    origin = service.service.url;
    browser = await launchBrowser();
    page = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      const { origin: sent, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && sent !== origin) complaints.push(`asked ${request.url()}`);
    });
    await page.goto(`${origin}/docs`);
    await page.waitForSelector(".opblock");
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
  });

  const blockOf = (method: string, path: string) =>
    page.locator(`.opblock-${method}`, { has: page.locator(`[data-path="${path}"]`) });

  async function tryOut(method: string, path: string) {
    const block = blockOf(method, path);
    await block.locator(".opblock-summary-control").click();
    await block.getByRole("button", { name: "Try it out" }).click();
    return block;
  }

  test("lists the operations", async () => {
    await expect(page.locator(".opblock").count()).resolves.toBeGreaterThan(20);
    expect(await blockOf("get", "/users").count()).toBe(1);
  });

  test("runs an operation and shows its response", async () => {
    const block = await tryOut("get", "/users");
    await block.getByRole("button", { name: "Execute" }).click();
    await block.locator(".live-responses-table").waitFor();
    await expect.poll(() => block.locator(".live-responses-table").textContent()).toContain("ann@example.org");
  });

  test("shows the operations of a token's role, and runs them with the token", async () => {
    expect(await blockOf("post", "/api/v1/articles").count()).toBe(0);
    await page.locator(".auth-wrapper .authorize").first().click();
    const form = page.locator(".auth-container", { hasText: "bearer" }).first();
    await form.locator("input").fill(tokenFor(1));
    await form.getByRole("button", { name: "Apply credentials" }).click();
    await page.locator(".close-modal").click();
    await blockOf("post", "/api/v1/articles").waitFor();

    const block = await tryOut("post", "/api/v1/articles");
    await block.locator("textarea").fill(JSON.stringify({ title: "Written in the reference", content: "…" }));
    await block.getByRole("button", { name: "Execute" }).click();
    const answer = block.locator(".live-responses-table");
    await expect.poll(() => answer.textContent()).toContain('"title": "Written in the reference"');
    await expect.poll(() => answer.textContent()).toContain("201");
  });

  test("switches to the second version", async () => {
    await page.locator("#select").selectOption({ label: "Version 2" });
    await blockOf("get", "/api/v2/articles").waitFor();
    expect(await blockOf("get", "/users").count()).toBe(0);
  });

  test("loads nothing from other hosts, and the browser logs no errors", () => {
    expect(complaints).toEqual([]);
  });
});
