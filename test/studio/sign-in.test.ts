import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInBrowser, type OpenStudio, openStudio } from "./studio.ts";

const EMAIL = "root@example.org";
const PASSWORD = "Tangerine-Boat-7";

describeInBrowser("signing in to Studio", () => {
  let studio: OpenStudio;
  beforeAll(async () => {
    const settings = { STUDIO: "administrators", ADMIN_EMAIL: EMAIL, ADMIN_PASSWORD: PASSWORD };
    studio = await openStudio({ settings });
  });
  afterAll(() => studio?.close());

  test("by the sign-in page leads back to the address that was opened", async () => {
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio/access?tab=doctor`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.locator("input[type=password]").waitFor();
    await page.locator("input[name=username], input[type=email]").first().fill(EMAIL);
    await page.locator("input[type=password]").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Problems", selected: true }).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/studio/access?tab=doctor");
    await page.getByRole("button", { name: "Signed in as Administrator" }).waitFor();
    await page.close();
  });

  test("with a token that is not an administrator's says so", async () => {
    const page = await studio.browser.newPage();
    await page.goto(`${studio.service.url}/studio`);
    await page.getByLabel("Access token").fill("eyJhbGciOiJIUzI1NiJ9.e30.x");
    await page.getByRole("button", { name: "Use the token" }).click();
    await page.getByText("The token is not valid, or is not an administrator's.").waitFor();
    await page.close();
  });
});
