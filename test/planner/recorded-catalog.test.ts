import { afterAll, beforeAll, expect, test } from "vitest";
import type { Museum } from "./museum.ts";
import { openPlanningDatabase, readRecordedRows, recordRows, writeRecordedRows } from "./recorded-catalog.ts";

let museum: Museum;
beforeAll(async () => {
  museum = await openPlanningDatabase();
});
afterAll(async () => {
  await museum.owner.query("drop owned by page_clerk; drop role page_clerk; drop role planning_login");
  await museum.drop();
});

/** After a change of a query of the catalogue, of the museum or of planning.sql: `RECORD=catalog npx vitest run` this file. */
if (process.env.RECORD === "catalog") {
  test("the rows of the catalogue are recorded", async () => {
    await writeRecordedRows(await recordRows(museum.owner));
  });
} else {
  test("the recorded rows are those that the queries of the catalogue return", async () => {
    expect((await recordRows(museum.owner)).split("\n")).toEqual((await readRecordedRows()).split("\n"));
  });
}
