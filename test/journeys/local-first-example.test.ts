import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../browser.ts";
import { useFixture } from "../fixture.ts";
import { openRealtimeFixture } from "../realtime/service.ts";
import { PASSWORD, startExample } from "./start-example.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/local-first");

const isInstalled = existsSync(join(EXAMPLE, "node_modules"));
if (!isInstalled)
  console.warn("The local-first example is not tested; `npm ci --prefix examples/local-first` brings it.");

(isInstalled ? describeInBrowser : describe.skip)("the local-first example", () => {
  let ada: Page;
  let reader: Page;
  const complaints: string[] = [];

  const fixture = useFixture(() => openRealtimeFixture("select"));
  const example = useFixture(() => startExample(join(EXAMPLE, "server.ts"), fixture.service.url, ["Ada", "Bob"]));
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    const open = async (name: string) => {
      const page = await (await browser.newContext()).newPage();
      page.on("pageerror", (error) => complaints.push(String(error)));
      await page.goto(example.address);
      await page.getByLabel("Email").fill(`${name.toLowerCase()}@example.org`);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText(`Signed in as ${name}`).waitFor();
      return page;
    };
    [ada, reader] = [await open("Ada"), await open("Bob")];
  });

  const articles = (page: Page) => page.getByRole("listitem").allInnerTexts();
  const publish = async (title: string) => {
    await ada.getByLabel("Title").fill(title);
    await ada.getByRole("button", { name: "Publish" }).click();
  };
  const article = (title: string, about: string, ...buttons: string[]) =>
    [title, `Ada · ${about}`, ...buttons].join("\n\n");

  test("an article and its comments arrive in both browsers, each with its author", async () => {
    await publish("First light");
    await expect.poll(() => articles(reader)).toEqual([article("First light", "0 comments", "Comment")]);
    await ada.getByRole("button", { name: "Comment" }).click();
    for (const page of [ada, reader])
      await expect.poll(() => articles(page)).toEqual([article("First light", "1 comment", "Comment")]);
  });

  test("what is written offline is shown at once, and sent later in one batch", async () => {
    const batches: string[] = [];
    ada.on(
      "request",
      (request) =>
        request.url().endsWith("/rest/v1/") && request.method() === "POST" && batches.push(request.postData()!),
    );
    await ada.context().setOffline(true);
    await publish("Second light");
    await publish("Third light");
    await ada.getByText("not sent yet").nth(1).waitFor();
    expect(batches).toEqual([]);
    await ada.context().setOffline(false);
    const expected = ["Third light", "Second light"].map((title) => article(title, "0 comments", "Comment"));
    await expect.poll(async () => (await articles(reader)).slice(0, 2).toSorted()).toEqual(expected.toSorted());
    expect(batches.map((batch) => JSON.parse(batch).length)).toEqual([2]);
    await expect.poll(() => ada.getByText("not sent yet").count()).toBe(0);
    expect(await ada.getByRole("listitem").count()).toBe(3);
  });

  test("a refused write is undone, with the reason", async () => {
    await publish("Bad");
    await ada.getByRole("alert").waitFor();
    await expect.poll(() => ada.getByRole("listitem").count()).toBe(3);
    expect(complaints).toEqual([]);
  });
});
