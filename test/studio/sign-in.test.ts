import jwt from "jsonwebtoken";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { SECRET } from "../secret.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const EMAIL = "root@example.org";
const PASSWORD = "Tangerine-Boat-7";

async function signIn(page: Page, email: string): Promise<void> {
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.locator("input[type=password]").waitFor();
  await page.locator("input[name=username], input[type=email]").first().fill(email);
  await page.locator("input[type=password]").fill(PASSWORD);
  await page.keyboard.press("Enter");
}

describeInBrowser("signing in to Studio", () => {
  const settings = { STUDIO: "administrators", ADMIN_EMAIL: EMAIL, ADMIN_PASSWORD: PASSWORD };
  const studio = useFixture(() => openStudio({ settings }));

  test("by the sign-in page leads back to the address that was opened", async () => {
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio/access?tab=doctor`);
    await signIn(page, EMAIL);
    await page.getByRole("tab", { name: "Problems", selected: true }).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/studio/access?tab=doctor");
    await page.getByRole("button", { name: "Signed in as Administrator" }).waitFor();
    await page.close();
  });

  test("ends by Sign out, also when the page is loaded again", async () => {
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio`);
    await signIn(page, EMAIL);
    await page.getByRole("button", { name: "Signed in as Administrator" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("Access token").waitFor();
    await page.reload();
    await expect.poll(() => page.getByLabel("Access token").isVisible()).toBe(true);
    await page.close();
  });

  test("as a user who is not an administrator shows why it is refused", async () => {
    const account = { email: "ada@example.org", password: PASSWORD };
    const token = jwt.sign({ role: "service_role" }, SECRET);
    const created = await fetch(`${studio.service.url}/auth/v1/admin/users`, {
      method: "POST",
      headers: { apikey: token, authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ ...account, email_confirm: true }),
    });
    expect(created.status).toBe(200);
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio`);
    expect(await page.getByText("not as an administrator").count()).toBe(0);
    await signIn(page, account.email);
    await page.getByText("You are signed in, but not as an administrator.").waitFor();
    await page.close();
  });

  test("with a token that is not an administrator's shows why it is refused", async () => {
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio`);
    await page.getByLabel("Access token").fill("eyJhbGciOiJIUzI1NiJ9.e30.x");
    await page.getByRole("button", { name: "Use the token" }).click();
    await expect
      .poll(() => page.getByText("The token is not valid, or is not an administrator's.").isVisible())
      .toBe(true);
    await page.close();
  });
});

describeInBrowser("Studio of a database without accounts", () => {
  test("asks for a token, and has no link to sign-in pages", async () => {
    const studio = await openStudio({ template: "empty", settings: { STUDIO: "administrators" } });
    try {
      const page = await studio.browser.newPage();
      await page.goto(`${studio.service.url}/studio`);
      await page.getByText("the database has no accounts").waitFor();
      expect(await page.getByRole("link", { name: "Sign in" }).count()).toBe(0);
      await page.getByLabel("Access token").waitFor();
    } finally {
      await studio.close();
    }
  });
});
