import { expect, test } from "vitest";
import { expectAccessibleLayouts } from "../../../page-layouts.ts";
import { COLUMNS, describeFilms } from "../films.ts";

describeFilms("the comparison of two rows", (films) => {
  test("shows all columns side by side, and marks those that differ", async () => {
    const { page } = films;
    const button = page.getByRole("button", { name: "Compare", exact: true });
    await films.goTo(0, "title");
    await page.keyboard.press("Space");
    await films.goTo(1, "title");
    expect(await button.count()).toBe(0);
    await page.keyboard.press("Space");
    await button.click();
    const dialog = page.getByRole("dialog", { name: "Two rows of films" });
    await dialog.getByText("4 of 11 columns differ.").waitFor();
    expect(await dialog.locator("tbody tr").count()).toBe(COLUMNS.length);
    const marked = await dialog.locator("tr.editing-differs").allInnerTexts();
    expect(marked.map((text) => text.split(/\s+/).filter(Boolean))).toEqual([
      ["id", "differs", "1", "2"],
      ["title", "differs", "Cléo", "Xala"],
      ["price", "differs", "12345678901234567890.10", "NULL"],
      ["director", "differs", "1", "3"],
    ]);
    await expectAccessibleLayouts(page, "compared rows");
    await page.keyboard.press("Escape");
    await films.goTo(2, "title");
    await page.keyboard.press("Space");
    expect(await button.count()).toBe(0);
  });
});
