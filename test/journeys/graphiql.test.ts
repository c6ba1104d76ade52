import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { pasteInto } from "../graphiql.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";
import { expectAccessible, layoutsOf } from "../page-layouts.ts";

describeInBrowser("GraphiQL in a browser", () => {
  let page: Page;
  const complaints: string[] = [];
  const graphql = useFixture(() =>
    serveGraphQL({
      before: "insert into public.users (name, email) values ('Ann', 'ann@example.org')",
    }),
  );
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    const permissions = ["clipboard-read", "clipboard-write"];
    page = await browser.newPage({ viewport: { width: 1400, height: 900 }, permissions });
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== graphql.service.url) complaints.push(`asked ${request.url()}`);
    });
    await page.goto(`${graphql.service.url}/graphiql`);
    await page.waitForSelector(".graphiql-execute-button");
  });

  const write = (editor: string, text: string) => pasteInto(page, editor, text);
  const run = () => page.click(".graphiql-execute-button");
  const shown = async () => (await page.locator(".result-window .CodeMirror-code").textContent()) ?? "";

  test("opens with a query over tables that the caller may read", async () => {
    await run();
    await expect.poll(shown).toContain('"email": "ann@example.org"');
    expect(await shown()).not.toContain('"errors"');
  });

  test("runs a query", async () => {
    await write(".graphiql-query-editor", "{ user(id: 1) { name email } }");
    await run();
    await expect.poll(shown).toContain('"email": "ann@example.org"');
  });

  test("shows the error of a query", async () => {
    await write(".graphiql-query-editor", "{ me { name } }");
    await run();
    await expect.poll(shown).toContain('"code": "AUTH_REQUIRED"');
  });

  test("runs a mutation with the token in the headers", async () => {
    await page.getByRole("button", { name: "Headers" }).click();
    await write(".graphiql-editor-tool", JSON.stringify({ Authorization: `Bearer ${tokenFor(1)}` }));
    const input = '{ title: "Written in GraphiQL", content: "…" }';
    await write(
      ".graphiql-query-editor",
      `mutation { createArticle(input: ${input}) { success article { title author { name } } } }`,
    );
    await run();
    await expect.poll(shown).toContain('"title": "Written in GraphiQL"');
    expect(await shown()).toContain('"name": "Ann"');
  });

  test("shows the events of a subscription, with the same token", async () => {
    await write(".graphiql-query-editor", "subscription { onArticleCreated { title author { name } } }");
    await run();
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(1);
    await graphql.sql("insert into public.articles (author_id, title, content) values (1, 'Live from Postgres', '')");
    await expect.poll(shown).toContain('"title": "Live from Postgres"');
    await run();
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(0);
  });

  test("documents the schema with its SQL comments", async () => {
    await page.getByRole("button", { name: "Show Documentation Explorer" }).click();
    await page.getByRole("link", { name: "Query", exact: true }).first().click();
    await expect
      .poll(() => page.locator(".graphiql-doc-explorer").textContent())
      .toContain("The user who is signed in.");
  });

  test.each(layoutsOf("graphiql"))(
    "is accessible $width px wide in $colorScheme colours",
    async ({ width, colorScheme }) => {
      const context = await browser.newContext({ viewport: { width, height: 780 }, colorScheme });
      const opened = await context.newPage();
      await opened.goto(`${graphql.service.url}/graphiql`);
      await opened.click(".graphiql-execute-button");
      await opened.locator(".result-window").getByText('"data"').waitFor();
      await expectAccessible(opened);
      await opened.getByRole("button", { name: "Show Documentation Explorer" }).click();
      await opened.getByRole("link", { name: "Query", exact: true }).waitFor();
      await expectAccessible(opened);
      await context.close();
    },
  );

  test("loads nothing from other hosts and nothing that its policy forbids", () => {
    expect(complaints).toEqual([]);
  });
});
