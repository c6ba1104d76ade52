import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { describeInBrowser, openStudio } from "./studio.ts";

const SCHEMA = `
  create table notes (id bigint primary key, owner_id bigint, note text not null);
  alter table notes enable row level security;
  create policy own_notes on notes for select to authenticated using (owner_id = (select auth.uid()));
  grant select on notes to authenticated;
  insert into notes select n, n, 'note ' || n from generate_series(1, 3) n;
  create table open_notes (id bigint primary key);
  grant select on open_notes to anon;
  create table wide_notes (id bigint primary key);
  grant select, update on wide_notes to anon, admin;
  insert into wide_notes values (1)`;

describeInBrowser("the part Access of Studio", () => {
  const studio = useFixture(() => openStudio({ schema: SCHEMA }));
  beforeAll(async () => {
    const user = { name: "Ada", email: "ada@example.org", password: "Tangerine-Boat-7" };
    await fetch(`${studio.service.url}/auth/register`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(user),
    });
    await studio.sql("update notes set owner_id = (select id from users where email = $1) where id = 1", [user.email]);
  });

  test("tries all commands, and explains a cell by policies in words and by missing grants", async () => {
    const page = await studio.open("/studio/access");
    await page.getByRole("button", { name: "Try all commands" }).click();
    await page.getByRole("button", { name: "0 of 3: authenticated, select, notes", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("authenticated may select rows where owner_id is the caller's id.").waitFor();
    expect(await dialog.getByRole("group", { name: "SQL of the policy own_notes" }).textContent()).toContain("using (");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "denied: anon, select, notes", exact: true }).click();
    await page.getByText('grant select on "public"."notes" to "anon";').waitFor();
    await page.close();
  });

  test("finds tables in the trial, whose heads stay in view, and colours what anybody may change", async () => {
    const page = await studio.open("/studio/access");
    await page.setViewportSize({ width: 1300, height: 420 });
    await page.getByRole("button", { name: "Try all commands" }).click();
    await page.getByRole("progressbar").waitFor({ state: "detached" });
    const outcome = (name: string) => page.getByRole("button", { name, exact: true });
    const groundOf = (name: string) => outcome(name).evaluate((cell) => getComputedStyle(cell).backgroundColor);
    const denied = await groundOf("denied: anon, select, notes");
    expect(await groundOf("0 of 3: authenticated, select, notes")).toBe(denied);
    const allowed = await groundOf("all 1: admin, update, wide_notes");
    expect(await groundOf("all 1: anon, select, wide_notes")).toBe(allowed);
    const surprising = await groundOf("all 1: anon, update, wide_notes");
    expect(new Set([denied, allowed, surprising]).size).toBe(3);

    const head = page.getByRole("columnheader", { name: "anon" });
    const before = await head.boundingBox();
    await page.locator(".access-matrix-view").evaluate((view) => view.scrollTo(0, view.scrollHeight));
    expect(await head.boundingBox()).toEqual(before);

    await page.getByRole("searchbox", { name: "Search tables" }).fill("OPEN_");
    await outcome("denied: anon, select, notes").waitFor({ state: "detached" });
    expect(await page.getByRole("rowheader", { name: /notes$/ }).allTextContents()).toEqual(["open_notes"]);
    await page.getByRole("searchbox", { name: "Search tables" }).fill("nowhere");
    await page.getByText("No table matches.").waitFor();
    await page.close();
  });

  test("names no role to explain a request for until the roles are known", async () => {
    const page = await studio.open("/studio/files");
    const known = Promise.withResolvers<void>();
    await page.route("**/admin/v1/catalog", async (route) => {
      await known.promise;
      await route.continue();
    });
    await page.goto(`${studio.service.url}/studio/access?tab=why`);
    const roles = page.getByRole("combobox", { name: "As" });
    await expect.poll(() => roles.textContent()).toMatch(/^\s*Loading…\s*$/);
    expect(await roles.isDisabled()).toBe(true);
    known.resolve();
    await expect.poll(() => roles.locator("option").allTextContents()).toContain("admin");
    await page.close();
  });

  test("shows how far the trial of all commands is from its start", async () => {
    const page = await studio.open("/studio/access");
    const answered = Promise.withResolvers<void>();
    await page.route("**/admin/v1/policies*", async (route) => {
      await answered.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Try all commands" }).click();
    await page.getByRole("progressbar", { name: "Try all commands" }).waitFor();
    await expect.poll(() => page.getByText("The first tables are tried.").isVisible()).toBe(true);
    answered.resolve();
    await page.getByRole("progressbar").waitFor({ state: "detached" });
    await page.close();
  });

  test("explains which rows of a request are hidden", async () => {
    const page = await studio.open("/studio/access?tab=why&path=/rest/v1/notes&role=authenticated");
    await page.getByText("authenticated sees 0 of 3 rows.").waitFor();
    await page.getByRole("cell", { name: "id = 2" }).waitFor();
    await page.getByLabel("Request: a path below").fill("/rest/v1/notes?id=eq.1");
    await page.route("**/admin/v1/why", (route) => route.fulfill({ status: 503, json: {} }), { times: 1 });
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("authenticated sees 0 of 1 rows.").waitFor();
    expect(new URL(page.url()).searchParams.get("path")).toBe("/rest/v1/notes?id=eq.1");
    await page.getByLabel("As").selectOption("anon");
    await page.getByText(/anon gets 401/).waitFor();
    await page.getByText('grant select on "public"."notes" to "anon";').waitFor();
    await page.close();
  });

  test("explains why a person does not see a row, from the person and from the row, also after a reload", async () => {
    const page = await studio.open("/studio/people");
    await page.getByRole("link", { name: "ada@example.org", exact: true }).click();
    await page.getByRole("link", { name: "What this person sees" }).click();
    await page.getByRole("button", { name: "notes", exact: true }).click();
    await page.getByText("authenticated sees 1 of 3 rows.").waitFor();
    expect(await page.getByRole("combobox", { name: "As" }).locator("option:checked").textContent()).toBe(
      "ada@example.org",
    );

    await page.goto(`${studio.service.url}/studio/tables/public/wide_notes`);
    await page.getByRole("gridcell", { name: "1", exact: true }).first().click();
    await page.getByRole("button", { name: "Details" }).click();
    await page.getByRole("link", { name: "Who sees this row, and why not" }).click();
    await page.getByRole("button", { name: "Choose a person" }).click();
    await page.getByRole("dialog").getByLabel("Search users").fill("ada@");
    await page.getByRole("button", { name: "ada@example.org" }).click();
    const refused = page.getByText('grant select on "public"."wide_notes" to "authenticated";');
    await refused.waitFor();
    await page.reload();
    await refused.waitFor();
    await page.getByRole("combobox", { name: "As" }).selectOption("anon");
    await page.getByText("anon sees 1 of 1 rows.").waitFor();
    await page.close();
  });

  test("lists problems, and applies the SQL that fixes one", async () => {
    const page = await studio.open("/studio/access?tab=doctor");
    const problem = page.getByRole("listitem").filter({ hasText: 'Every row of "public"."open_notes" is accessible' });
    await problem.getByRole("button", { name: "Apply…" }).click();
    const dialog = page.getByRole("dialog");
    await expect.poll(() => dialog.getByText("enable row level security").first().isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    await page.close();
  });

  test("shows all of Studio as another caller until that is stopped", async () => {
    const page = await studio.open("/studio/access?tab=why&path=/rest/v1/notes");
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("dialog").getByLabel("Search users").fill("ada@");
    await page.getByRole("button", { name: "ada@example.org" }).click();
    await page.getByText("Viewing as ada@example.org (authenticated)").waitFor();
    await page.getByText("authenticated sees 1 of 3 rows.").waitFor();
    const [event] = await studio.sql<{ details: { role: string } }>(
      "select details from auth.audit_log where event = 'studio.viewed_as'",
    );
    expect(event?.details.role).toBe("authenticated");
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Viewing as").waitFor({ state: "hidden" });
    await page.close();
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    const page = await studio.open("/studio/access?tab=why&path=/rest/v1/notes&role=authenticated");
    await page.getByRole("cell", { name: "id = 2" }).waitFor();
    await expectAccessibleLayouts(page, "access-why");
    await page.close();
  });
});
