import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible, expectAccessibleLayouts } from "../../../page-layouts.ts";
import { until } from "../../../until.ts";
import { COLUMNS, describeFilms } from "../films.ts";

describeFilms("editing rows", (films) => {
  test("a cell is edited by keyboard: F2, the text, Enter", async () => {
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("<img src=x onerror=alert(1)>");
    await films.page.keyboard.press("Enter");
    await films.shows(0, "title", "<img src=x onerror=alert(1)>");
    expect(await films.stored("title")).toBe("<img src=x onerror=alert(1)>");
  });

  test.each([
    ["price", "98765432109876543210.5", "98765432109876543210.5"],
    ["at", "2026-11-22 12:00:00.123456+00", "2026-11-22 12:00:00.123456+00"],
    ["tags", "{a,NULL}", "{a,NULL}"],
    ["title", "=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"],
  ])("a value of %s is stored as it was typed", async (column, typed, value) => {
    await films.goTo(0, column);
    await films.page.keyboard.press("Enter");
    await films.page.getByLabel(`Value of ${column}`).fill(typed);
    await films.page.keyboard.press("Tab");
    await films.shows(0, column, value);
    expect(await films.stored(column)).toBe(value);
  });

  test("Tab moves to the next column, Escape leaves the value as it was", async () => {
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("Changed");
    await films.page.keyboard.press("Tab");
    await films.shows(0, "title", "Changed");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of price").fill("1");
    await films.page.keyboard.press("Escape");
    await films.shows(0, "price", "12345678901234567890.10");
    expect(await films.stored("price")).toBe("12345678901234567890.10");
  });

  test("a row inserted into a long table is shown, wherever the order puts it", async () => {
    await films.studio.sql("insert into films (title) select 'Film ' || n from generate_series(1, 700) as n");
    await films.open("films");
    await films.page.getByRole("button", { name: "Insert row" }).click();
    await films.page
      .getByRole("dialog")
      .getByLabel(/^title/)
      .fill("The last one");
    await films.page.getByRole("dialog").getByRole("button", { name: "Insert", exact: true }).click();
    await expect
      .poll(() => films.page.locator(".grid-row").getByText("The last one", { exact: true }).isVisible())
      .toBe(true);
    await films.shows(703, "title", "The last one");
  });

  test("a row just inserted is edited before its place is known, and the field keeps the focus", async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let counts = 0;
    await films.page.route(/\/rest\/v1\/films\?/, async (route) => {
      if (route.request().method() === "HEAD") await held;
      await route.continue();
    });
    films.page.on("response", (response) => {
      if (response.request().method() === "HEAD") counts += 1;
    });
    await films.page.getByRole("button", { name: "Insert row" }).click();
    await films.page.getByRole("dialog").getByLabel("title").fill("Nw");
    await films.page.getByRole("dialog").getByRole("button", { name: "Insert", exact: true }).click();
    await films.page.getByRole("dialog").waitFor({ state: "detached" });
    await films.shows(3, "title", "Nw");
    await films.cell(3, "title").dblclick();
    await films.page.getByLabel("Value of title").fill("Ne");
    release();
    // The rows are counted after the insert, up to the new row in two steps, and before the move to it.
    await until(() => counts === 4);
    await films.page.evaluate("new Promise(requestAnimationFrame)");
    await films.page.keyboard.type("w");
    await films.page.keyboard.press("Enter");
    await films.shows(3, "title", "New");
    expect(await films.stored("title", 4)).toBe("New");
    await films.page.unrouteAll();
  });

  test("booleans have three states, and enums their labels", async () => {
    for (const [column, choice, shown] of [
      ["seen", "false", "false"],
      ["mood", "bad", "bad"],
      ["seen", "NULL", "null"],
    ] as const) {
      await films.goTo(0, column);
      await films.page.keyboard.press("F2");
      await films.page.getByLabel(`Value of ${column}`).selectOption({ label: choice });
      await films.page.keyboard.press("Enter");
      await films.shows(0, column, shown);
    }
    expect([await films.stored("seen"), await films.stored("mood")]).toEqual([null, "bad"]);
  });

  test("Alt+N tells NULL from an empty text", async () => {
    await films.goTo(0, "price");
    await films.page.keyboard.press("F2");
    await films.page.keyboard.press("Alt+n");
    await films.page.keyboard.press("Enter");
    await films.shows(0, "price", "null");
    expect(await films.stored("price")).toBeNull();
  });

  test("JSON is edited in a dialog, and keeps its digits", async () => {
    await films.goTo(0, "data");
    await films.page.keyboard.press("F2");
    const text = '{"n": 12345678901234567890.10}';
    await films.page.getByRole("dialog").getByLabel("data").fill(text);
    await films.page.keyboard.press("Control+Enter");
    await films.shows(0, "data", text);
    expect(await films.stored("data")).toBe(text);
  });

  test("a value that is none is not sent, and one that the service refuses says why", async () => {
    await films.goTo(0, "price");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of price").fill("many");
    await films.page.keyboard.press("Enter");
    await films.page.getByRole("alert").getByText("This is not a number.").waitFor();
    await films.page.keyboard.press("Escape");
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("");
    await films.page.keyboard.press("Enter");
    await films.page.getByRole("alert").getByText("films_title_check").waitFor();
    await films.page.keyboard.press("Escape");
    expect([await films.stored("price"), await films.stored("title")]).toEqual(["12345678901234567890.10", "Cléo"]);
  });

  test("a click on another cell saves, and comes back to a value that was refused", async () => {
    await films.goTo(0, "price");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of price").fill("5");
    await films.goTo(1, "title");
    await films.shows(0, "price", "5");
    expect(await films.stored("price")).toBe("5");
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("");
    await films.goTo(1, "price");
    await films.page.getByRole("alert").getByText("films_title_check").waitFor();
    expect(await films.page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Value of title");
    expect(await films.stored("title")).toBe("Cléo");
  });

  test("a row that no policy lets the caller change shows that no row was changed", async () => {
    await films.goTo(2, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("Unlocked");
    await films.page.keyboard.press("Enter");
    const refusal = films.page.getByRole("alert").filter({ hasText: "No policy allows you to change this row." });
    expect(await refusal.getByRole("link", { name: "Why?" }).getAttribute("href")).toMatch(/^\/studio\/access\?/);
    await films.page.keyboard.press("Escape");
    expect(await films.stored("title", 3)).toBe("Locked");
  });

  test("why a write was refused explains the write, not a read of the row", async () => {
    await films.goTo(2, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("Unlocked");
    await films.page.keyboard.press("Enter");
    await films.page.getByRole("alert").getByRole("link", { name: "Why?" }).click();
    await films.page.getByRole("alert").getByText("Policies do not let admin update this row.").waitFor();
    await films.page.getByRole("row", { name: /update, of the row as it is.*refuses/ }).waitFor();
    expect(await films.page.getByLabel("Command").inputValue()).toBe("update");
    await expectAccessible(films.page);

    await films.open("films");
    await films.page.getByRole("button", { name: "Insert row" }).click();
    await films.page
      .getByRole("dialog")
      .getByLabel(/^title/)
      .fill("forbidden");
    await films.page.getByRole("dialog").getByRole("button", { name: "Insert", exact: true }).click();
    await films.page.getByRole("dialog").getByRole("link", { name: "Why?" }).click();
    await films.page.getByRole("alert").getByText("Policies do not let admin insert this row.").waitFor();
    await films.page.getByRole("row", { name: /insert, of the row as written.*refuses.*add/ }).waitFor();
  });

  test("another caller can change what that caller's privileges allow, and gets a message about the rest", async () => {
    const view = await films.studio.open("/studio/tables/public/films?order=id.asc");
    await view.getByRole("button", { name: "View as…" }).click();
    await view.getByRole("dialog").getByRole("button", { name: "anon", exact: true }).click();
    await view.getByRole("button", { name: "Insert row" }).waitFor({ state: "detached" });
    const at = (column: string) => view.locator(`[data-row="0"] [data-column="${COLUMNS.indexOf(column)}"]`);
    await at("title").click();
    await view.keyboard.press("F2");
    await view.getByText("You may not write this column.").waitFor();
    await view.keyboard.press("Delete");
    await view.getByText("You may not delete rows of this table.").waitFor();
    await at("price").click();
    await view.keyboard.press("F2");
    await view.getByLabel("Value of price").fill("7");
    await view.keyboard.press("Enter");
    await expect.poll(async () => (await films.stored("price")) === "7").toBe(true);
    await view.close();
  });

  test("a refused change offers the privilege that it needs, after which it is possible", async () => {
    const view = await films.studio.open("/studio/tables/public/films?order=id.asc");
    await view.getByRole("button", { name: "View as…" }).click();
    await view.getByRole("dialog").getByRole("button", { name: "anon", exact: true }).click();
    await view.getByRole("button", { name: "Insert row" }).waitFor({ state: "detached" });
    const title = view.locator(`[data-row="0"] [data-column="${COLUMNS.indexOf("title")}"]`);
    const refusedBy = async (key: string, text: string) => {
      await title.click();
      await view.keyboard.press(key);
      const toast = view.locator(".toast", { hasText: text });
      await toast.getByRole("button", { name: "Grant…" }).click();
      return view.getByRole("dialog", { name: "Grant access to films" });
    };
    const grantsIn = (dialog: ReturnType<Page["locator"]>) =>
      dialog.locator(".cm-content").evaluate((element) => element.textContent);
    const close = (dialog: ReturnType<Page["locator"]>) =>
      dialog.getByRole("button", { name: "Close", exact: true }).click();
    try {
      const deletion = await refusedBy("Delete", "You may not delete rows of this table.");
      await until(async () => (await grantsIn(deletion)) === "grant delete on public.films to anon;");
      await close(deletion);
      const insertion = await refusedBy("Insert", "You may not insert rows of this table.");
      await until(async () => (await grantsIn(insertion))!.startsWith("grant insert (id, title, price, "));
      await close(insertion);
      const update = await refusedBy("F2", "You may not write this column.");
      await until(async () => (await grantsIn(update)) === "grant update (title) on public.films to anon;");
      await update.getByRole("button", { name: "Run", exact: true }).click();
      await update.waitFor({ state: "detached" });
      // The page reads the catalogue again.
      const editor = view.getByLabel("Value of title");
      await until(async () => {
        await title.click();
        await view.keyboard.press("F2");
        return (await editor.count()) === 1;
      });
      await editor.fill("Granted");
      await view.keyboard.press("Enter");
      await expect.poll(async () => (await films.stored("title")) === "Granted").toBe(true);
    } finally {
      await films.studio.sql("revoke update (title) on public.films from anon");
      await view.close();
    }
  });

  test("a row that somebody else changed shows both values, and keeps the one that is chosen", async () => {
    await films.page.locator(".badge.good").waitFor();
    for (const [choice, expected] of [
      ["Take theirs", "Theirs"],
      ["Keep yours", "Yours"],
    ] as const) {
      await films.studio.sql("update films set title = 'Before' where id = 1");
      await films.shows(0, "title", "Before");
      await films.goTo(0, "title");
      await films.page.keyboard.press("F2");
      await films.page.getByLabel("Value of title").fill("Yours");
      await films.studio.sql("update films set title = 'Theirs' where id = 1");
      await films.page.keyboard.press("Enter");
      const dialog = films.page.getByRole("dialog", { name: "Changed meanwhile" });
      await dialog.waitFor();
      const values = dialog.getByRole("row", { name: "title" }).getByRole("cell");
      expect(await values.allTextContents()).toEqual(["Before", "Theirs", "Yours"]);
      await dialog.getByRole("button", { name: choice }).click();
      await films.shows(0, "title", expected);
      expect(await films.stored("title")).toBe(expected);
    }
  });

  test("the form has columns that are named as members of all objects", async () => {
    await films.open("races");
    await films.page.getByRole("button", { name: "Insert row" }).click();
    const form = films.page.getByRole("dialog", { name: "Insert into races" });
    await form.getByLabel(/^id/).fill("2");
    expect(await form.getByLabel(/^constructor/).inputValue()).toBe("");
    await form.getByRole("button", { name: "Insert", exact: true }).click();
    await form.getByText("A value is required.").waitFor();
    await form.getByLabel(/^constructor/).fill("Ferrari");
    await form.getByLabel(/^__proto__/).fill("<b>");
    await form.getByRole("button", { name: "Insert", exact: true }).click();
    await form.waitFor({ state: "detached" });
    const rows = await films.studio.sql("select races::text from races where id = 2");
    expect(rows).toEqual([{ races: "(2,Ferrari,<b>)" }]);
  });

  test("a row is inserted by the form, with a director who is searched for", async () => {
    await films.page.getByRole("button", { name: "Insert row" }).click();
    const form = films.page.getByRole("dialog", { name: "Insert into films" });
    await form.getByRole("button", { name: "Insert", exact: true }).click();
    await form.getByText("A value is required.").waitFor();
    await form.getByLabel("title · text · required").fill("Faat Kiné");
    await form.getByRole("button", { name: "Choose a row for director" }).click();
    const picker = films.page.getByRole("dialog", { name: "Choose from directors" });
    await picker.getByText("<img src=x onerror=alert(1)>").waitFor();
    await picker.getByLabel("Search").fill("sembène");
    await until(async () => (await picker.getByRole("option").count()) === 1);
    await films.page.keyboard.press("Enter");
    await until(async () => (await form.getByLabel("director · integer").inputValue()) === "3");
    await form.getByRole("button", { name: "Insert", exact: true }).click();
    await films.shows(3, "title", "Faat Kiné");
    expect([await films.stored("director", 4), await films.stored("locked", 4)]).toEqual(["3", "false"]);
    await films.page.keyboard.press("Control+z");
    await until(async () => (await films.studio.sql("select from films")).length === 3);
  });

  test("the form shows what a policy and a constraint refuse", async () => {
    await films.page.getByRole("grid").focus();
    await films.page.keyboard.press("Insert");
    const form = films.page.getByRole("dialog", { name: "Insert into films" });
    await form.getByLabel("title · text · required").fill("forbidden");
    await films.page.keyboard.press("Enter");
    await form.getByRole("alert").getByText("row-level security").waitFor();
    await form.getByLabel("title · text · required").fill("Allowed");
    await form.getByLabel("director · integer").fill("77");
    await films.page.keyboard.press("Enter");
    await form.getByText('is not present in table "directors"').waitFor();
    expect(await films.page.evaluate("document.activeElement.closest('[data-column]').dataset.column")).toBe(
      "director",
    );
    await films.page.keyboard.press("Escape");
    expect(await films.studio.sql("select from films")).toHaveLength(3);
  });

  test("a delete shows what it does to other rows, and cannot be undone then", async () => {
    await films.goTo(0, "title");
    await films.page.keyboard.press("Delete");
    const dialog = films.page.getByRole("dialog", { name: "Delete 1 row of films?" });
    await dialog.getByText("2 rows of reviews will be deleted too").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await films.shows(0, "title", "Xala");
    expect(await films.studio.sql("select from reviews")).toHaveLength(0);
    await films.page.getByRole("grid").focus();
    await films.page.keyboard.press("Control+z");
    await films.page.getByText("It cannot be undone: other rows were deleted or changed together with it.").waitFor();
  });

  test("a delete that rows prevent says so, and what the service answers", async () => {
    await films.studio.sql("insert into prizes values (1, 2)");
    await films.goTo(1, "title");
    await films.page.keyboard.press("Delete");
    const dialog = films.page.getByRole("dialog", { name: "Delete 1 row of films?" });
    await dialog.getByText("1 row of prizes prevent").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("alert").getByText("violates foreign key constraint").waitFor();
    await films.page.keyboard.press("Escape");
    expect(await films.studio.sql("select from films")).toHaveLength(3);
  });

  test("selected rows are deleted together, and come back by Ctrl+Z", async () => {
    await films.goTo(1, "title");
    await films.page.keyboard.press("Space");
    await films.page.keyboard.press("ArrowDown");
    await films.page.keyboard.press("Space");
    await films.page.keyboard.press("Delete");
    const before = await films.studio.sql("select * from films order by id");
    await films.page
      .getByRole("dialog", { name: "Delete 2 rows of films?" })
      .getByRole("button", { name: "Delete" })
      .click();
    await until(async () => (await films.studio.sql("select from films")).length === 1);
    await films.page.getByRole("status").getByRole("button", { name: "Undo" }).click();
    await until(async () => (await films.studio.sql("select from films")).length === 3);
    expect(await films.studio.sql("select * from films order by id")).toEqual(before);
  });

  test("the Undo of a message takes back the change that it is about, also after others, and once", async () => {
    const start = () => films.page.getByRole("button", { name: "Insert row" }).click();
    await start();
    await films.page.getByRole("dialog").getByLabel("title").fill("New");
    await films.page.getByRole("dialog").getByRole("button", { name: "Insert" }).click();
    const message = films.page.locator(".toast", { hasText: "Row inserted." });
    await message.waitFor();
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("Edited");
    await films.page.keyboard.press("Enter");
    await until(async () => (await films.stored("title")) === "Edited");
    await message.getByRole("button", { name: "Undo" }).click();
    await until(async () => (await films.studio.sql("select from films where title = 'New'")).length === 0);
    expect(await films.stored("title")).toBe("Edited");
    await films.page.keyboard.press("Control+z");
    await until(async () => (await films.stored("title")) === "Cléo");
  });

  test("a change is undone, but not over what somebody else wrote since", async () => {
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("First");
    await films.page.keyboard.press("Enter");
    await films.shows(0, "title", "First");
    await films.page.keyboard.press("Control+z");
    await films.shows(0, "title", "Cléo");
    expect(await films.stored("title")).toBe("Cléo");
    await films.goTo(0, "title");
    await films.page.keyboard.press("F2");
    await films.page.getByLabel("Value of title").fill("Second");
    await films.page.keyboard.press("Enter");
    await films.shows(0, "title", "Second");
    await films.studio.sql("update films set title = 'Theirs' where id = 1");
    await films.page.getByRole("button", { name: "Undo" }).click();
    await films.page.getByText("It cannot be undone: somebody else has changed the row since.").waitFor();
    expect(await films.stored("title")).toBe("Theirs");
  });

  test("rows that others change flash with the new value, and new rows are announced", async () => {
    await films.page.locator(".badge.good").waitFor();
    await films.studio.sql("update films set title = '<b>theirs</b>' where id = 2");
    await films.page.locator('[data-row="1"].editing-changed').waitFor();
    await films.shows(1, "title", "<b>theirs</b>");
    await films.studio.sql("delete from films where id = 3");
    await expect.poll(() => films.page.locator('[data-row="2"].editing-deleted').isVisible()).toBe(true);
    await films.studio.sql("insert into films (title) values ('Moolaadé')");
    await films.page.getByRole("button", { name: "Show them" }).click();
    await films.shows(2, "title", "Moolaadé");
  });

  test("a table that is not published says why its rows are not live, and how they become so", async () => {
    await films.open("secrets");
    const statement = films.page.getByText("alter publication supabase_realtime add table public.secrets;");
    await expect.poll(() => statement.count()).toBe(1);
  });

  test("is accessible on a phone and on a large screen, light and dark", async () => {
    const view = await films.studio.open("/studio/tables/public/films?order=id.asc");
    await view.locator(".grid-row:not(.pending)").first().waitFor();
    const dialog = (name: string) => view.getByRole("dialog", { name });
    const chooseAction = async (name: string) => {
      await view.getByRole("button", { name: "Export, Import" }).click();
      await view.getByRole("menuitem", { name }).click();
    };
    const states: Record<string, () => Promise<void>> = {
      async cell() {
        await view.locator('[data-row="0"] [data-column="1"]').click();
        await view.keyboard.press("F2");
        await view.getByLabel("Value of title").fill("");
        await view.keyboard.press("Enter");
        await view.getByRole("alert").waitFor();
      },
      async form() {
        await view.getByRole("button", { name: "Insert row" }).click();
        await dialog("Insert into films").getByRole("button", { name: "Insert", exact: true }).click();
        await dialog("Insert into films").getByText("A value is required.").waitFor();
      },
      async picker() {
        await view.getByRole("button", { name: "Insert row" }).click();
        await view.getByRole("button", { name: "Choose a row for director" }).click();
        await dialog("Choose from directors").getByRole("option").first().waitFor();
      },
      async deletion() {
        await view.locator('[data-row="0"] [data-column="1"]').click();
        await view.keyboard.press("Delete");
        await dialog("Delete 1 row of films?").getByText("reviews").waitFor();
      },
      async exporting() {
        await chooseAction("Export");
        await dialog("Export films").waitFor();
      },
      async importing() {
        await chooseAction("Import");
        const file = { name: "films.csv", mimeType: "", buffer: Buffer.from("Title,price,unknown\nA,1,\n,x,\n") };
        await view.getByLabel("CSV or JSON file").setInputFiles(file);
        await dialog("Import into films").getByText("2 problems found.").waitFor();
      },
    };
    for (const [name, show] of Object.entries(states)) {
      await view.setViewportSize({ width: 1300, height: 900 });
      await show();
      await expectAccessibleLayouts(view, name);
      while ((await view.locator("dialog[open], .editing-cell").count()) > 0) await view.keyboard.press("Escape");
    }
    await view.close();
  });
});
