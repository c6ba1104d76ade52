import { describe, expect, test } from "vitest";
import { openDatabase } from "../../../postgres/database/database.ts";
import { cloneDatabase } from "../../database.ts";
import { openWire } from "../../postgres-wire.ts";
import { anon, commonOptions, PID, sql } from "./open.ts";

commonOptions.current = { transactionMode: "explicit" };

// The tests of these files again, with BEGIN and COMMIT around every request.
describe("with explicit transactions", () => {
  describe("as-login", async () => {
    await import("./as-login.test.ts");
  });
  describe("connection", async () => {
    await import("./connection.test.ts");
  });
  describe("database-errors", async () => {
    await import("./database-errors.test.ts");
  });
  describe("database", async () => {
    await import("./database.test.ts");
  });
  describe("fair-sharing-at-work", async () => {
    await import("./fair-sharing-at-work.test.ts");
  });
  describe("observe-statements", async () => {
    await import("./observe-statements.test.ts");
  });
  describe("response-budget", async () => {
    await import("./response-budget.test.ts");
  });
  describe("result-collectors", async () => {
    await import("./result-collectors.test.ts");
  });
  describe("statement-execution", async () => {
    await import("./statement-execution.test.ts");
  });
  describe("statement-groups", async () => {
    await import("./statement-groups.test.ts");
  });
  describe("transaction", async () => {
    await import("./transaction.test.ts");
  });

  test("a refused ROLLBACK is repeated, so that the next request does not fail", async () => {
    const { url, ownerUrl, drop } = await cloneDatabase("empty");
    let refused = 0;
    const refuseRollback = (said: Buffer) => {
      const at = said.indexOf("rollback");
      if (at < 0 || refused > 0) return;
      said.write("rollbacc", at);
      refused++;
    };
    const wire = await openWire(url, { listen: () => refuseRollback });
    const log = { info() {}, warn() {} };
    const database = openDatabase({ url: wire.url, ownerUrl, log, poolSize: 1, ...commonOptions.current });
    const session = (await database.run(anon, PID)).rows;
    await expect(database.run(anon, sql("select 1 / 0"))).rejects.toMatchObject({ code: "22012" });
    expect((await database.run(anon, PID)).rows).toEqual(session);
    expect(refused).toBe(1);
    await database.close();
    await wire.close();
    await drop();
  });
});
