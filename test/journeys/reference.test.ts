import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";
import { expectAccessible, layoutsOf } from "../page-layouts.ts";

describeInBrowser("/docs in a browser", () => {
  let page: Page;
  let origin: string;
  const complaints: string[] = [];
  const service = useFixture(() =>
    serveGraphQL({
      before: "insert into public.users (name, email) values ('Ann', 'ann@example.org')",
    }),
  );
  beforeAll(async () => {
    origin = service.service.url;
  });
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    page = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      const { origin: sent, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && sent !== origin) complaints.push(`asked ${request.url()}`);
    });
    await page.goto(`${origin}/docs`);
    await page.waitForSelector(".operation");
  });

  const operation = (on: Page, id: string) => on.locator(`[id="${id}"]`);

  async function open(on: Page, id: string) {
    const block = operation(on, id);
    await block.locator("summary").first().click();
    await block.getByRole("button", { name: "Send" }).waitFor();
    return block;
  }

  test("lists the operations", async () => {
    await expect(page.locator(".operation").count()).resolves.toBeGreaterThan(20);
    expect(await operation(page, "root.users.list").textContent()).toBe("GET/usersList users");
  });

  test("finds operations by words of their method, path and summary", async () => {
    const filter = page.getByLabel("Filter");
    await filter.fill("delete users");
    await expect.poll(() => page.locator(".operation").count()).toBe(2);
    expect(await page.getByRole("heading", { level: 2 }).allTextContents()).toEqual(["users"]);
    await filter.fill("");
  });

  test("runs an operation and shows its response", async () => {
    const block = await open(page, "root.users.list");
    await block.getByText("Optional parameters").click();
    await block.getByLabel("fields", { exact: true }).fill("email");
    expect(await block.locator("form pre").textContent()).toBe(`curl '${origin}/users?fields=email'`);
    await block.getByRole("button", { name: "Send" }).click();
    await expect.poll(() => block.locator(".response").textContent()).toContain("ann@example.org");
    expect(await block.getByRole("heading", { name: "200 OK" }).count()).toBe(1);
  });

  test("shows the schema and an example of a body", async () => {
    const block = await open(page, "root.users.create");
    expect(JSON.parse(await block.getByLabel("Body").inputValue())).toEqual({ name: "text", email: "text" });
    await block.getByText("Schema of the body").click();
    await expect
      .poll(() => block.locator("details pre").first().textContent())
      .toMatch(/^\{\n {2}name: string .*\n {2}age\?: integer \| null .*\n\}\nor an array of these$/s);
  });

  test("shows the operations of a token's role, and runs them with the token", async () => {
    expect(await operation(page, "articles.create").count()).toBe(0);
    await page.getByLabel("Access token").fill(tokenFor(1));
    await page.getByRole("button", { name: "Apply token" }).click();
    await operation(page, "articles.create").waitFor();

    const block = await open(page, "articles.create");
    await block.getByLabel("Body").fill(JSON.stringify({ title: "Written in the reference", content: "…" }));
    await block.getByRole("button", { name: "Send" }).click();
    await expect.poll(() => block.locator(".response").textContent()).toContain('"title": "Written in the reference"');
    expect(await block.getByRole("heading", { name: "201 Created" }).count()).toBe(1);
    expect(await block.locator("form pre").first().textContent()).toContain('-H "Authorization: Bearer $TOKEN"');
  });

  test("switches to the second version", async () => {
    await page.getByLabel("Version").selectOption({ label: "Version 2" });
    await page.getByText("/api/v2/articles", { exact: true }).first().waitFor();
    expect(await operation(page, "root.users.list").count()).toBe(0);
  });

  test("opens an operation by its link", async () => {
    const linked = await browser.newPage();
    await linked.goto(`${origin}/docs#auth.login`);
    await expect.poll(() => operation(linked, "auth.login").getByLabel("Body").isVisible()).toBe(true);
    await linked.close();
  });

  test("links to the document without JavaScript", async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const plain = await context.newPage();
    await plain.goto(`${origin}/docs`);
    expect(await plain.getByRole("link", { name: "the OpenAPI document" }).getAttribute("href")).toBe("/openapi.json");
    await context.close();
  });

  test.each(layoutsOf("reference"))(
    "is accessible $width px wide in $colorScheme colours",
    async ({ width, colorScheme }) => {
      const context = await browser.newContext({ viewport: { width, height: 780 }, colorScheme });
      const opened = await context.newPage();
      await opened.goto(`${origin}/docs`);
      await opened.waitForSelector(".operation");
      await expectAccessible(opened);
      const block = await open(opened, "root.users.list");
      await block.getByText("Optional parameters").click();
      await block.getByText("Schema", { exact: true }).click();
      await block.getByRole("button", { name: "Send" }).click();
      await block.locator(".response").waitFor();
      await expectAccessible(opened);
      await context.close();
    },
  );

  test("loads nothing from other hosts, and the browser logs no errors", () => {
    expect(complaints).toEqual([]);
  });
});
