import type { Page } from "playwright-core";

/** Signs in the person of the README's first five minutes. */
export async function signInAda(page: Page, address: string): Promise<void> {
  await page.goto(`${address}/auth/sign-in`);
  await page.getByLabel("E-mail address or user name").fill("ada@example.org");
  await page.getByLabel("Password").fill("Tangerine-Boat-7");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL("**/auth/account");
}
