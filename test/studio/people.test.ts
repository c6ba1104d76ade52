import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { expectAccessible, expectAccessibleLayouts } from "../page-layouts.ts";
import { until } from "../until.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const PASSWORD = "correct horse Battery 9";
const ANNA = "anna@example.org";

describeInBrowser("the page of people", () => {
  let page: Page;
  const mailDir = useFolder("mail-");
  const studio = useFixture(() => openStudio({ path: "/studio/people", settings: { MAIL_DIR: mailDir } }));
  beforeAll(async () => {
    page = studio.page;
    await page.getByRole("button", { name: "Create a user" }).waitFor();
  });

  const dialog = () => page.getByRole("dialog");
  const act = async (name: string) => {
    await dialog().getByRole("button", { name, exact: true }).click();
    await dialog().waitFor({ state: "detached" });
  };
  /** Chooses an action from the menu of the user. */
  const choose = async (name: string) => {
    await page.getByRole("button", { name: "Actions" }).click();
    await page.getByRole("menuitem", { name, exact: true }).click();
  };
  const openTab = (name: string) => page.getByRole("tab", { name, exact: true }).click();
  const region = (name: string) => page.getByRole("region", { name, exact: true });
  const openAnna = async () => {
    await openTab("Users");
    await page.getByRole("link", { name: ANNA, exact: true }).click();
    await page.getByRole("heading", { name: ANNA }).waitFor();
  };
  const logIn = (path: string) =>
    fetch(studio.service.url + path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username: ANNA, password: PASSWORD }),
    });

  test("creates a user by keyboard, and finds the user again", async () => {
    await page.getByRole("button", { name: "Create a user" }).press("Enter");
    await dialog().getByLabel("E-mail address").fill("not an address");
    await dialog().getByLabel("E-mail address").fill(ANNA);
    await dialog().getByLabel("Password").fill("short");
    await page.keyboard.press("Enter");
    await dialog().getByRole("alert").waitFor();
    await dialog().getByLabel("Password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: ANNA }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/studio\/people\/users\/[\da-f-]{36}$/);

    await page.getByRole("link", { name: "All users" }).click();
    const [search, found] = [page.getByRole("searchbox"), page.getByRole("link", { name: ANNA, exact: true })];
    await search.fill("nobody at all");
    await page.getByText("No user matches.").waitFor();
    await search.fill("anna@");
    await found.waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("anna@");
    const [{ key }] = (await studio.sql<{ key: string }>(
      `select user_id::text as key from auth.users where email = '${ANNA}'`,
    )) as [{ key: string }];
    await search.fill(key);
    await page.getByRole("row").filter({ has: found }).getByRole("cell", { name: key, exact: true }).waitFor();
    await search.fill("");
  });

  test("shows the sessions of a user, ends one, and ends all", async () => {
    expect((await logIn("/auth/login")).status).toBe(200);
    expect((await logIn("/api/auth/login")).status).toBe(200);
    await openAnna();
    const sessions = region("Sessions");
    const buttons = sessions.getByRole("button", { name: "End" });
    await until(async () => (await buttons.count()) === 2);
    await buttons.first().click();
    await until(async () => (await buttons.count()) === 1);
    await choose("Sign out everywhere");
    await act("Sign out everywhere");
    await sessions.getByText("The user is signed in nowhere.").waitFor();
  });

  test("bans a user, ends the ban, and changes role and metadata", async () => {
    await openAnna();
    await choose("Ban");
    await act("Ban");
    await page.getByText(/^banned until/).waitFor();
    expect((await logIn("/auth/login")).status).toBe(403);
    await choose("End the ban");
    await act("End the ban");
    await page.getByText(/^banned until/).waitFor({ state: "detached" });

    await choose("Change the role");
    await dialog().getByLabel("Role").selectOption("admin");
    await act("Change the role");
    await page.locator(".facts").getByText("admin").waitFor();

    await choose("Edit the metadata");
    const metadata = dialog().getByLabel("user_metadata");
    await metadata.fill("[1]");
    await dialog().getByRole("button", { name: "Edit the metadata" }).click();
    await dialog().getByText("This must be a JSON object.").first().waitFor();
    await metadata.fill('{"note": "<b>hostile</b>"}');
    await act("Edit the metadata");
    await region("Metadata").getByText('"note": "<b>hostile</b>"').waitFor();
  });

  test("makes a link to set a password, and invites an administrator, who chooses a password and is in Studio", async () => {
    await openAnna();
    await choose("Link to set a password");
    expect(await dialog().locator("code").textContent()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/auth\/v1\/verify\?/);
    await page.keyboard.press("Escape");

    await openTab("Users");
    await page.getByRole("button", { name: "Invite a user" }).click();
    await dialog().getByLabel("E-mail address").fill("invited@example.org");
    await dialog().getByLabel("Role").selectOption("admin");
    await expectAccessible(page);
    await act("Send the invitation");
    await page.getByText("invited", { exact: true }).waitFor();
    await openTab("Sent e-mails");
    const mail = page.getByRole("article").filter({ hasText: "To invited@example.org" });
    await until(async () => {
      await page.getByRole("button", { name: "Reload" }).click();
      return (await mail.count()) > 0;
    });
    await mail
      .getByText(/^.* invites you to 127\.0\.0\.1/)
      .first()
      .waitFor();
    const link = (await mail.getByRole("link").getAttribute("href"))!;
    expect(link).toMatch(/\/auth\/invitation\?token=/);

    const invited = await (await studio.browser.newContext()).newPage();
    await invited.goto(link);
    await invited.getByText("invited@example.org").waitFor();
    await expectAccessible(invited);
    await invited.getByLabel("Password").fill(PASSWORD);
    await invited.getByRole("button", { name: "Accept the invitation" }).click();
    await invited.waitForURL(`${studio.service.url}/studio**`);
    await invited.locator(".frame").waitFor();
    await invited.close();
  });

  test("sends a test e-mail", async () => {
    await openTab("Sent e-mails");
    await page.getByRole("button", { name: "Send a test e-mail" }).click();
    await expectAccessible(page);
    await dialog().getByLabel("E-mail address").fill("sample@example.org");
    await act("Send");
    const sample = page.getByRole("article").filter({ hasText: "To sample@example.org" });
    await sample.waitFor();
    expect(await sample.getByRole("link").getAttribute("href")).toMatch(/\/auth\/invitation\?token=sample$/);
  });

  test("makes a key that is shown once and works, and revokes it", async () => {
    await openTab("API keys");
    await page.getByText("You are not signed in:").waitFor();
    await page.getByRole("button", { name: "Make a key" }).click();
    await dialog().getByLabel("Name").fill("of a test");
    await dialog().getByRole("button", { name: "Make a key" }).click();
    const made = page.getByRole("dialog", { name: "The new key" });
    const key = (await made.locator("code").textContent())!;
    const statusOf = async () =>
      (await fetch(`${studio.service.url}/rest/v1/users?select=id`, { headers: { apikey: key } })).status;
    expect(await statusOf()).toBe(200);
    await page.keyboard.press("Escape");
    await made.waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(key);

    const row = page.getByRole("row").filter({ hasText: "of a test" });
    await row.getByRole("button", { name: "Revoke" }).click();
    await act("Revoke");
    await row.getByText("revoked").waitFor();
    await until(async () => (await statusOf()) === 401);
  });

  test("filters the audit log, and keeps the filter in the address", async () => {
    await openTab("Audit log");
    await page.getByLabel("Event", { exact: true }).fill("api_key.");
    const events = page.locator("td:nth-child(2)");
    await until(async () => {
      const shown = await events.allTextContents();
      return shown.length > 0 && shown.every((event) => event.startsWith("api_key."));
    });
    expect(new URL(page.url()).searchParams.get("event")).toBe("api_key.");
    await page.getByLabel("Before").fill("2020-01-01");
    await page.getByText("There are no entries.").waitFor();
  });

  test("lists providers", async () => {
    await studio.sql(
      "insert into auth.providers (name, kind, issuer, client_id) values ('acme', 'oidc', 'https://acme.example', 'a')",
    );
    await openTab("Providers");
    await expect.poll(() => page.getByText("https://acme.example").isVisible()).toBe(true);
  });

  test("shows the settings of sign-in, and where to set them", async () => {
    await openTab("Settings");
    const row = page.getByRole("row").filter({ hasText: "PASSWORD_POLICY" });
    await row.waitFor();
    expect(await row.textContent()).toMatch(/standard.*default.*8 characters/);
    await page.getByText(/in its environment, in the file .env/).waitFor();
    await expectAccessible(page);
  });

  test("removes a user's factor, and deletes the user", async () => {
    await studio.sql(
      `insert into auth.mfa_factors (user_id, state, secret, factor_type, friendly_name, enabled_at)
        select user_id, 'enabled', 'JBSWY3DPEHPK3PXP', 'totp', 'the phone', now() from auth.users where email = $1`,
      [ANNA],
    );
    await openAnna();
    const factors = region("Second factors");
    await factors.getByText("the phone").waitFor();
    await factors.getByRole("button", { name: "Remove" }).click();
    await factors.getByText("None.").waitFor();
    await page.getByRole("button", { name: "Delete the user" }).click();
    await act("Delete the user");
    await page.getByRole("link", { name: "invited@example.org" }).waitFor();
    expect(await page.getByRole("link", { name: ANNA, exact: true }).count()).toBe(0);
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    for (const path of ["users", "keys", "emails", "audit"]) {
      await page.goto(`${studio.service.url}/studio/people/${path}`);
      await page.getByRole("tabpanel").waitFor();
      await until(async () => (await page.locator(".loading").count()) === 0);
      await expectAccessibleLayouts(page, `people-${path}`);
    }
    await page.goto(`${studio.service.url}/studio/people/users`);
    await page.getByRole("link", { name: "invited@example.org" }).click();
    await page.getByRole("heading", { name: "invited@example.org" }).waitFor();
    await expectAccessible(page);
  });
});
