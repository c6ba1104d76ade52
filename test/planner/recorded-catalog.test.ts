import { afterAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { openPlanningDatabase, readRecordedRows, recordRows, writeRecordedRows } from "./recorded-catalog.ts";

const fixture = useFixture(openPlanningDatabase);
afterAll(async () => {
  await fixture.owner.query("drop owned by page_clerk; drop role page_clerk; drop role planning_login");
});

/** Run this file with `RECORD=catalog npx vitest run` after a change of a query of the catalogue, of the fixture or of planning.sql. */
if (process.env.RECORD === "catalog") {
  test("the rows of the catalogue are recorded", async () => {
    const rows = await recordRows(fixture.owner);
    await writeRecordedRows(rows);
    expect((await readRecordedRows()).split("\n")).toEqual(rows.split("\n"));
  });
} else {
  test("the recorded rows are those that the queries of the catalogue return", async () => {
    expect((await recordRows(fixture.owner)).split("\n")).toEqual((await readRecordedRows()).split("\n"));
  });
}
