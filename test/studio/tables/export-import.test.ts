import { expect, test } from "vitest";
import { describeFilms } from "./films.ts";

describeFilms("exporting and importing rows", (films) => {
  test("the filtered rows are exported as CSV and imported again", async () => {
    await films.studio.sql("update films set title = '=cmd|'' /C calc''!A0' where id = 2");
    await films.page.goto(`${films.studio.service.url}/studio/tables/public/films?order=id.asc&id=gte.2`);
    await films.shows(0, "title", "=cmd|' /C calc'!A0");
    await films.page.getByRole("button", { name: "Export, Import" }).click();
    await films.page.getByRole("menuitem", { name: "Export" }).click();
    const dialog = films.page.getByRole("dialog", { name: "Export films" });
    await dialog.getByLabel("data", { exact: true }).uncheck();
    await dialog.getByLabel("For spreadsheets").check();
    const [download] = await Promise.all([
      films.page.waitForEvent("download"),
      dialog.getByRole("button", { name: "Export" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("films.csv");
    const text = (await Array.fromAsync(await download.createReadStream())).join("");
    expect(text.split("\r\n")).toEqual([
      "id,title,price,seen,mood,day,at,tags,director,locked",
      "2,'=cmd|' /C calc'!A0,,,,,,,3,false",
      "3,Locked,1,,,,,,,true",
      "",
    ]);
  });

  async function openImport(text: string, name = "films.csv") {
    await films.page.getByRole("button", { name: "Export, Import" }).click();
    await films.page.getByRole("menuitem", { name: "Import" }).click();
    const dialog = films.page.getByRole("dialog", { name: "Import into films" });
    await dialog.getByLabel("CSV or JSON file").setInputFiles({ name, mimeType: "", buffer: Buffer.from(text) });
    return dialog;
  }

  test("a file is checked before anything of it is sent, and imported when it has no problems", async () => {
    const dialog = await openImport("Title,price\nA,1\n,x\n");
    await dialog.getByText("2 problems found. Nothing was sent.").waitFor();
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual([
      "Line 3 · title · A value is required.",
      "Line 3 · price · This is not a number.",
    ]);
    const file = { name: "good.csv", mimeType: "", buffer: Buffer.from("Title;price\n<b>A</b>;1\nB;\n") };
    await dialog.getByLabel("CSV or JSON file").setInputFiles(file);
    await dialog.getByText("<b>A</b>").waitFor();
    await dialog.getByRole("button", { name: "Import 2 rows" }).click();
    await dialog.getByText("2 rows were imported.").waitFor();
    await films.page.keyboard.press("Escape");
    await films.shows(4, "title", "B");
    expect(await films.studio.sql("select title, price from films where id > 3 order by id")).toEqual([
      { title: "<b>A</b>", price: "1" },
      { title: "B", price: null },
    ]);
  });

  test("an import that the service refuses names the line, and inserts nothing of its request", async () => {
    const dialog = await openImport('[{"title": "A"},\n{"title": "B", "director": 77}]', "films.json");
    await dialog.getByRole("button", { name: "Import 2 rows" }).click();
    await dialog.getByText("Line 2 was refused.").waitFor();
    await dialog.getByText("Nothing of lines 1 to 2 was inserted").waitFor();
    expect(await films.studio.sql("select from films")).toHaveLength(3);
  });
});
