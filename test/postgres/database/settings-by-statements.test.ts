import { afterAll, beforeAll, describe } from "vitest";
import { commonOptions } from "./open.ts";

const usual = commonOptions.current;
beforeAll(() => {
  commonOptions.current = { settingMode: "statements" };
});
afterAll(() => {
  commonOptions.current = usual;
});

// The tests of these files again, with a SET LOCAL for each setting. The query makes them modules of their own.
const FILES = ["as-login", "database", "observe-statements", "statement-execution", "statement-groups", "transaction"];

for (const file of FILES) {
  describe(file, async () => {
    await import(`./${file}.test.ts?by=statements`);
  });
}
