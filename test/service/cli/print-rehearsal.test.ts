import { expect, test } from "vitest";
import { NO_MEASURES } from "../../../migrate/measure-statement.ts";
import type { RehearsedStatement } from "../../../migrate/rehearse.ts";
import { printRehearsal, printWarnings } from "../../../service/cli/print-rehearsal.ts";

const HELD: RehearsedStatement = {
  ...NO_MEASURES,
  file: "0010-fill.sql",
  line: 2,
  sql: "select fill()",
  lockedRows: [
    { relation: "public.notes", rows: 12_000, isEarlier: false },
    { relation: "public.tags", rows: 3, isEarlier: true },
  ],
  verdict: "holds writes",
  safeForm: "Change fewer rows.",
  undo: null,
};

test("names the tables whose rows are locked, for a rehearsal and a commit", () => {
  const locks = [
    "  locks on 12,000 rows of public.notes: holds writes of these rows",
    "  locks on 3 rows of public.tags of an earlier statement: holds writes of these rows",
  ].join("\n");
  expect(printRehearsal([HELD], "text")).toContain(`holds writes: 0010-fill.sql:2: select fill()\n${locks}\n`);
  expect(printWarnings([HELD])).toContain(`${locks}\n  Safe form: Change fewer rows.`);
  expect(printWarnings([{ ...HELD, verdict: "brief" }])).toBeNull();
});
