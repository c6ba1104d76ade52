import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible, LAYOUTS } from "../page-layouts.ts";
import { describeInBrowser, type OpenStudio, openStudio } from "./studio.ts";

describeInBrowser("the SQL page", () => {
  let studio: OpenStudio;
  beforeAll(async () => {
    studio = await openStudio({ path: "/studio/sql" });
  });
  afterAll(() => studio?.close());

  test("has an editor with a label, colours and completion, which Escape and Tab leave", async () => {
    const { page } = studio;
    const editor = page.getByRole("textbox", { name: "SQL statements" });
    await editor.click();
    await page.keyboard.type("sele");
    await page.getByRole("option", { name: "select", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("select 1 as one");
    const colourOf = (text: string) =>
      editor
        .locator("span", { hasText: text })
        .first()
        .evaluate((element) => getComputedStyle(element).color);
    const [keyword, number] = [await colourOf("select"), await colourOf("1")];
    expect(keyword).not.toBe(number);
    // The first one closes the suggestions.
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+Tab");
    expect(await editor.evaluate((element) => element.contains(document.activeElement))).toBe(false);
    for (const { width, colorScheme } of LAYOUTS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page);
    }
  });
});
