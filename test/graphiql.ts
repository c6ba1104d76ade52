import type { Page } from "playwright-core";

/** Pastes the text, because the editor closes brackets as they are typed. The page needs the permission to use the clipboard. */
export async function pasteInto(page: Page, editor: string, text: string): Promise<void> {
  await page.locator(`${editor} .CodeMirror`).filter({ visible: true }).first().click();
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.press("ControlOrMeta+V");
  // GraphiQL takes notice of an edit a moment later.
  await page.waitForTimeout(500);
}
