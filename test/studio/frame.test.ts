import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { expectAccessibleLayouts } from "../page-layouts.ts";
import { until } from "../until.ts";
import { describeInBrowser, modulePath, openStudio } from "./studio.ts";

const SCHEMA = `
  create function public.double(value integer) returns integer language sql immutable return value * 2;
  grant execute on function public.double to authenticated`;

const PAGES = ["Tables", "SQL", "Schema", "Access", "Files", "People", "Running", "Changes"];

describeInBrowser("the frame of Studio", () => {
  const studio = useFixture(() => openStudio({ schema: SCHEMA }));

  test("lists the parts, and shows the first of them at /studio", async () => {
    const links = studio.page.getByRole("navigation", { name: "Studio" }).getByRole("link");
    expect((await links.allTextContents()).map((text) => text.trim())).toEqual(PAGES);
    expect(await studio.page.getByRole("link", { name: "Tables" }).getAttribute("aria-current")).toBe("page");
  });

  test("is used by keyboard: the skip link, the navigation, and back", async () => {
    const page = await studio.open("/studio");
    await page.getByRole("link", { name: "Skip to the content" }).focus();
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("content");
    await page.getByRole("link", { name: "Schema" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Schema", level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/studio/schema");
    expect(await page.title()).toBe("Schema · Studio");
    await page.goBack();
    await page.getByRole("heading", { name: "Tables", level: 1 }).waitFor();
    await page.close();
  });

  test("keeps the chosen colour scheme", async () => {
    const page = await studio.open("/studio/schema");
    await page.getByRole("button", { name: "Colour scheme" }).click();
    await page.getByRole("menuitemradio", { name: "Dark" }).click();
    expect(await page.evaluate("getComputedStyle(document.documentElement).colorScheme")).toBe("dark");
    await page.reload();
    await page.locator(".frame, .sign-in").waitFor();
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    await page.close();
  });

  test("opens pages, tables and functions by name with Ctrl+K", async () => {
    const page = await studio.open("/studio/access");
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "Page, table or function" });
    await field.fill("arti rows");
    await page.getByRole("option", { name: /^articles/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    expect(await page.getByRole("option", { selected: true }).textContent()).toMatch(/^\s*article/);
    await field.fill("articles rows");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/studio/tables/public/articles");
    await page.keyboard.press("Control+k");
    await field.fill("double");
    await page.getByRole("option", { name: /^double\(value integer\)/ }).click();
    await page.waitForURL("**/studio/schema/function/public/double/value%20integer");
    await page.getByRole("heading", { name: "double(value integer)" }).waitFor();
    await page.close();
  });

  test("leads to the pages that send requests, and gives the address and the token to call the APIs", async () => {
    const page = await studio.open("/studio");
    await page.getByRole("button", { name: "APIs" }).click();
    const dialog = page.getByRole("dialog", { name: "APIs" });
    const links = dialog.getByRole("listitem").getByRole("link");
    expect(
      await links.evaluateAll((all) => all.map((link) => [link.getAttribute("href"), link.getAttribute("target")])),
    ).toEqual([
      ["/graphiql", "_blank"],
      ["/docs", "_blank"],
      ["/docs/guide/table-interface", "_blank"],
    ]);
    for (const link of await links.all()) {
      const path = await link.getAttribute("href");
      expect((await fetch(studio.service.url + path)).status, path!).toBe(200);
    }
    expect(await dialog.getByRole("group", { name: "Address" }).textContent()).toBe(studio.service.url);
    await page.getByText(/^Requests with this token run as admin, until 2/).waitFor();
    await page.close();
  });

  test("gives the token of the role that is viewed, which /rest/v1 accepts", async () => {
    const page = await studio.open("/studio");
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("region", { name: "Roles" }).getByRole("button", { name: "authenticated" }).click();
    await page.getByRole("button", { name: "APIs" }).click();
    await page.getByText(/^Requests with this token run as authenticated/).waitFor();
    const token = await page.getByRole("group", { name: "Access token" }).textContent();
    const response = await fetch(`${studio.service.url}/rest/v1/rpc/double?value=21`, {
      headers: { apikey: token!, Authorization: `Bearer ${token}` },
    });
    expect([response.status, await response.text()]).toEqual([200, "42"]);
    await page.getByRole("link", { name: "API keys" }).click();
    await page.waitForURL("**/studio/people/keys");
    await page.close();
  });

  test("keeps the viewed caller when the page is loaded again, for this project and tab, until viewing is stopped", async () => {
    const page = await studio.open("/studio");
    const isViewing = () => page.getByText("Viewing as authenticated").isVisible();
    const reload = async () => {
      await page.reload();
      await page.locator(".frame").waitFor();
    };
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("region", { name: "Roles" }).getByRole("button", { name: "authenticated" }).click();
    await page.getByText("Viewing as authenticated").waitFor();
    await reload();
    expect(await isViewing()).toBe(true);
    const stored = await page.evaluate<Record<string, string>>("({ ...localStorage })");
    const [[key, choice]] = Object.entries(stored).filter(([name]) => name.startsWith("studio.view-as.")) as [
      [string, string],
    ];
    expect(JSON.parse(choice)).toEqual({ subject: { role: "authenticated" }, label: "authenticated" });
    // Another project at the same address has another key.
    await page.evaluate(
      `localStorage.setItem("studio.view-as.other", localStorage.getItem("${key}")); localStorage.removeItem("${key}"); sessionStorage.clear()`,
    );
    await reload();
    expect(await isViewing()).toBe(false);
    // Another tab has viewed as the role since: this one goes on as before, and a new one takes it over.
    await page.evaluate(`localStorage.setItem("${key}", localStorage.getItem("studio.view-as.other"))`);
    await reload();
    expect(await isViewing()).toBe(false);
    await page.evaluate("sessionStorage.clear()");
    await reload();
    expect(await isViewing()).toBe(true);
    await page.getByRole("button", { name: "Stop" }).click();
    await reload();
    expect(await isViewing()).toBe(false);
    await page.close();
  });

  test("forgets the viewed user when the user is gone, and repeats nothing as the administrator", async () => {
    const addUser = (name: string) =>
      studio.sql(`select auth.add_account('${name}', '${name}@example.org', 'authenticated', null, null)`);
    const deleteUser = (name: string) =>
      studio.sql(`select auth.delete_account(auth.find_user('${name}@example.org'), false, null)`);
    const page = await studio.open("/studio/tables/public/articles");
    const choose = async (name: string) => {
      await page.getByRole("button", { name: "View as…" }).click();
      await page.getByRole("button", { name: `${name}@example.org` }).click();
      await page.getByText(`Viewing as ${name}@example.org (authenticated)`).waitFor();
    };
    await addUser("gone");
    await choose("gone");
    await page.goto("about:blank");
    await deleteUser("gone");
    await page.goto(`${studio.service.url}/studio/tables/public/articles`);
    await page.getByText("Viewing as gone@example.org has ended: User not found.").waitFor();
    expect(await page.locator(".view-as-bar").count()).toBe(0);
    await page.reload();
    await page.getByText("Acting as").waitFor();
    expect(await page.getByText("has ended").count()).toBe(0);

    await addUser("late");
    await choose("late");
    await deleteUser("late");
    const refused = await page.evaluate(
      async (module) => {
        const { request } = await import(module);
        for (;;) {
          try {
            await request("/rest/v1/articles", { method: "POST", body: { title: "Not mine", content: "x" } });
          } catch (error) {
            if ((error as { status: number }).status === 401) return true;
          }
        }
      },
      await modulePath(page, "common.js"),
    );
    expect(refused).toBe(true);
    await page.getByText(/Viewing as late@example.org has ended/).waitFor();
    const writers = studio.requests
      .filter(({ method, url }) => method === "POST" && url.endsWith("/rest/v1/articles"))
      .map(({ headers }) => JSON.parse(Buffer.from(headers.apikey!.split(".")[1]!, "base64url").toString()).role);
    expect(new Set(writers)).toEqual(new Set(["authenticated"]));
    await page.close();
  });

  test("goes on as the viewed caller while the service gives no new token for the caller", async () => {
    const page = await studio.open("/studio");
    await page.getByRole("button", { name: "View as…" }).click();
    await page.getByRole("region", { name: "Roles" }).getByRole("button", { name: "authenticated" }).click();
    await page.getByText("Viewing as authenticated").waitFor();
    let renewals = 0;
    await page.route("**/admin/v1/view-as", (route) => {
      renewals += 1;
      return renewals > 1 ? route.continue() : route.fulfill({ status: 503, json: { code: "X", message: "later" } });
    });
    await page.route("**/rest/v1/nothing", (route) =>
      route.fulfill({ status: 401, json: { code: "X", message: "old" } }),
    );
    const refuse = async (module: string) => {
      const { request } = await import(module);
      return request("/rest/v1/nothing").catch((error: { status: number }) => error.status);
    };
    expect(await page.evaluate(refuse, await modulePath(page, "common.js"))).toBe(401);
    expect(await page.getByText("Viewing as authenticated").isVisible()).toBe(true);
    await until(() => renewals > 1);
    expect(await page.getByText("Viewing as authenticated").isVisible()).toBe(true);
    await page.close();
  });

  test("does not lead to GraphiQL where the service has none", async () => {
    const page = await studio.open("/studio");
    await page.getByRole("button", { name: "APIs" }).click();
    expect(await page.getByRole("link", { name: "GraphiQL" }).count()).toBe(1);
    await page.evaluate(
      async (module) => {
        const { sessionState } = await import(module);
        const { session, ...state } = sessionState.get();
        sessionState.set({ ...state, session: { ...session, studio: { ...session.studio, graphiql: false } } });
      },
      await modulePath(page, "common.js"),
    );
    await expect.poll(() => page.getByRole("link", { name: "GraphiQL" }).count()).toBe(0);
    await page.getByRole("link", { name: "API reference" }).waitFor();
    await page.close();
  });

  test("has shortcuts, which a dialog lists, except where text is typed", async () => {
    const page = await studio.open("/studio/tables");
    await page.getByLabel("Search tables").waitFor();
    await page.getByRole("link", { name: "Tables", exact: true }).focus();
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await help.waitFor();
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe("Tables");
    await page.keyboard.press("/");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("type"))).toBe("search");
    await page.keyboard.type("g3?");
    await expect.poll(() => page.getByLabel("Search tables").inputValue()).toBe("g3?");
    await page.getByRole("link", { name: "Tables", exact: true }).focus();
    await page.keyboard.type("g3");
    await page.waitForURL("**/studio/schema");
    await page.close();
  });

  test("loads the modules of a part when it is first shown", async () => {
    const page = await studio.open("/studio/people");
    const loaded = () =>
      page.evaluate<string[]>("performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname)");
    const module = await modulePath(page, "running-page.js");
    expect(await loaded()).not.toContain(module);
    await page.getByRole("link", { name: "Running" }).click();
    await page.getByRole("heading", { name: "Running", level: 1 }).waitFor();
    expect(await loaded()).toContain(module);
    await page.close();
  });

  test("keeps its navigation when a page cannot be shown, and shows the page when it can", async () => {
    const page = await studio.open("/studio");
    await page.route("**/admin/v1/catalog", (route) =>
      route.fulfill({ json: { schemas: null, tables: [], functions: [], types: [] } }),
    );
    await page.goto(`${studio.service.url}/studio/schema`);
    await page.getByText("This page could not be shown.").waitFor();
    await page.getByRole("link", { name: "People" }).click();
    await page.getByRole("heading", { name: "People", level: 1 }).waitFor();
    await page.unroute("**/admin/v1/catalog");
    await page.goto(`${studio.service.url}/studio/schema`);
    await expect.poll(() => page.getByText("Choose an object.").isVisible()).toBe(true);
    await page.close();
  });

  test.each(["/studio/%ff", "/studio/tables/public/%c3", "/studio/constructor"])(
    "says that there is nothing at %s",
    async (path) => {
      const page = await studio.open("/studio");
      await page.goto(studio.service.url + path);
      await expect.poll(() => page.getByText(/There is no (such page|table)/).isVisible()).toBe(true);
      await page.close();
    },
  );

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    const page = await studio.open("/studio/nowhere");
    await expectAccessibleLayouts(page, "frame");
    await page.close();
  });
});
