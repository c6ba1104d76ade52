import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDatabase } from "../../../postgres/database/database.ts";
import { openWire } from "../../postgres-wire.ts";
import { alice, commonOptions, open, sql } from "./open.ts";

const usual = commonOptions.current;
beforeAll(() => {
  commonOptions.current = { settingMode: "statements" };
});
afterAll(() => {
  commonOptions.current = usual;
});

// The tests of these files again, with a SET LOCAL for each setting. The query makes them modules of their own.
const FILES = ["as-login", "database", "observe-statements", "statement-execution", "statement-groups", "transaction"];

test("a database of these tests sets what a caller has by statements", async () => {
  const sent: string[] = [];
  await using opened = await open();
  const wire = await openWire(opened.url, { listen: () => (bytes) => void sent.push(bytes.toString("latin1")) });
  const log = { info() {}, warn() {} };
  const tapped = openDatabase({ url: wire.url, ownerUrl: opened.url, log, poolSize: 1, ...commonOptions.current });
  await tapped.run(alice, sql("select 1"));
  await tapped.close();
  await wire.close();
  expect(sent.join("")).toContain('set local "request.jwt.claims" = ');
});

for (const file of FILES) {
  describe(file, async () => {
    await import(`./${file}.test.ts?by=statements`);
  });
}
