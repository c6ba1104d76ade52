import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "playwright-core";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../../browser.ts";
import { useFixture } from "../../../fixture.ts";
import { expectAccessibleLayouts } from "../../../page-layouts.ts";
import {
  type Application,
  newApplication,
  newPerson,
  openOAuth,
  PASSWORD,
  type Person,
  requestAuthorization,
} from "./open-oauth.ts";

describeInBrowser("the page of consent in a browser", () => {
  let context: BrowserContext;
  let page: Page;
  let person: Person;
  let application: Application;
  let siteUrl: string;
  /** The text on the page of the application's site. */
  let shown: string;

  const fixture = useFixture(openOAuth);
  const site = useFixture(
    () =>
      createServer((_request, response) => {
        response.setHeader("Content-Type", "text/html").end(shown);
      }),
    (server) => new Promise((resolve) => server.close(resolve)),
  );
  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    application = await newApplication(fixture, { redirect_uris: [`${siteUrl}/done`], client_name: "Films & more" });
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    person = await newPerson(fixture);
    return () => context.close();
  });

  /** Returns an address of another site than the application's, for browsers: so the session's cookie is not sent with the link. */
  const atLocalhost = (address: URL) => address.href.replace("127.0.0.1", "localhost");

  async function ask(scope = "read write openid") {
    const { address, state } = await requestAuthorization(application, { redirect_uri: `${siteUrl}/done`, scope });
    shown = `<a href="${atLocalhost(address).replaceAll("&", "&amp;")}">Sign in</a>`;
    await page.goto(siteUrl);
    await page.getByRole("link", { name: "Sign in" }).click();
    return state;
  }

  async function signIn() {
    await page.getByLabel("E-mail address or user name").fill(person.email);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  }

  const decide = (button: string) => page.getByRole("button", { name: button, exact: true }).click();

  test("follows the sign-in, says who asks for what, and leads back to the application with the decision", async () => {
    const state = await ask();
    await signIn();
    await page.getByRole("heading", { name: "Give access to your account?" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const part of [
      "Films & more",
      person.email,
      "Read what you may read",
      "a program on this device",
      "90 days",
    ]) {
      expect(text).toContain(part);
    }
    await page
      .getByText(/^In \d+ tables$/)
      .last()
      .click();
    await page.getByText("articles: add, change, delete").waitFor();
    await decide("Give access");
    await page.waitForURL(`${siteUrl}/done?**`);
    const { searchParams } = new URL(page.url());
    expect(searchParams.get("state")).toBe(state);
    expect(searchParams.get("code")).toHaveLength(43);
  });

  test("is shown to somebody who is signed in, though the link is on another site; refusing leads back too", async () => {
    await ask();
    await signIn();
    await page.getByRole("heading", { name: "Give access to your account?" }).waitFor();
    await ask("openid");
    await page.getByText("it reads and changes no data").waitFor();
    await decide("Refuse");
    await page.waitForURL(`${siteUrl}/done?**`);
    expect(new URL(page.url()).searchParams.get("error")).toBe("access_denied");
  });

  test("is not shown in a frame", async () => {
    await ask();
    await signIn();
    await page.getByRole("heading", { name: "Give access to your account?" }).waitFor();
    shown = `<iframe src="${page.url()}"></iframe>`;
    const refusal = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await page.goto(siteUrl);
    await refusal;
    expect(await page.frameLocator("iframe").getByText("Give access").count()).toBe(0);
  });

  test("is accessible, on a phone and on a large screen, in both colour schemes", async () => {
    await ask("read write openid read:films");
    await signIn();
    await page.getByRole("heading", { name: "Give access to your account?" }).waitFor();
    await expectAccessibleLayouts(page, "consent");
    await page.screenshot({ path: process.env.CONSENT_PICTURE ?? "/dev/null", type: "png" });
  });
});
