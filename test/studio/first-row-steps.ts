// The clicks of a newcomer in Studio until there is a row that another user sees.
import type { Browser, Locator, Page } from "playwright-core";

export const ADA = "ada@example.org";

/** Opens a page of Studio as a browser shows it that has never seen it. */
export async function openPage(browser: Browser, url: string, path: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
  page.setDefaultTimeout(0);
  await page.goto(url + path);
  await page.locator(".frame").waitFor();
  return page;
}

export const dialog = (page: Page, name: string) => page.getByRole("dialog", { name });
export const cell = (page: Page, row: number, text: string) =>
  page.locator(`[data-row="${row}"]`).getByText(text, { exact: true });

export async function insertRow(page: Page, table: string, values: Readonly<Record<string, string>>): Promise<void> {
  await page.getByRole("button", { name: "Insert row" }).click();
  const form = dialog(page, `Insert into ${table}`);
  for (const [label, value] of Object.entries(values)) await form.getByLabel(label, { exact: true }).fill(value);
  await form.getByRole("button", { name: "Insert", exact: true }).click();
  await form.waitFor({ state: "detached" });
}

export async function viewAs(page: Page, user: string): Promise<void> {
  await page.getByRole("button", { name: "View as…" }).click();
  await dialog(page, "View as…").getByRole("button", { name: user, exact: true }).click();
  await page.getByText(`Viewing as ${user} (authenticated)`).waitFor();
}

export async function createAda(page: Page): Promise<void> {
  await page.getByRole("link", { name: "People" }).click();
  await page.getByRole("button", { name: "Create a user" }).click();
  await page.getByLabel("E-mail address").fill(ADA);
  await page.getByLabel("Password", { exact: true }).fill("Tangerine-Boat-7");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText(ADA).first().waitFor();
}

/** Asks from the details of the first row what Ada sees of it, and returns once it is answered, also after a reload. */
export async function askWhy(page: Page, text: string, answer: string): Promise<void> {
  await cell(page, 0, text).click();
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByRole("link", { name: "Who sees this row, and why not" }).click();
  await page.getByRole("button", { name: "Choose a person" }).click();
  await page.getByRole("dialog").getByLabel("Search users").fill("ada@");
  await page.getByRole("dialog").getByRole("button", { name: ADA }).click();
  await page.getByText(answer).waitFor();
  await page.reload();
  await page.getByText(answer).waitFor();
}

/** Makes a table by the form of Studio, and opens its rows. */
export async function createTable(page: Page, name: string, fill: (form: Locator) => Promise<unknown>): Promise<void> {
  await page.getByRole("button", { name: "New table" }).click();
  const form = dialog(page, "New table");
  await form.getByLabel("Name", { exact: true }).first().fill(name);
  await fill(form);
  await form.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Write to the current migration" }).click();
  await page.getByRole("link", { name: "Rows", exact: true }).click();
}

/** Adds a column that is never null. The first one is that of the key. */
export async function addColumn(form: Locator, number: number, name: string, type: string): Promise<void> {
  await form.getByRole("button", { name: "Add column" }).click();
  await form.getByLabel(`Name of column ${number}`, { exact: true }).fill(name);
  await form.getByLabel(`Type of column ${number}`, { exact: true }).fill(type);
  await form.getByLabel(`Not null of column ${number}`, { exact: true }).check();
}

/** Makes the table tasks with a title and an author, which everybody reads. */
export function createTasksTable(page: Page): Promise<void> {
  return createTable(page, "tasks", async (form) => {
    await addColumn(form, 2, "title", "text");
    await addColumn(form, 3, "author_id", "bigint");
    await form.getByLabel("Default of column 3", { exact: true }).fill("auth.uid()");
  });
}

/** Edits the title of the first row in its cell. */
export async function changeTitle(page: Page, before: string, after: string): Promise<void> {
  await cell(page, 0, before).dblclick();
  await page.getByLabel("Value of title").fill(after);
  await page.keyboard.press("Enter");
  await cell(page, 0, after).waitFor();
}
