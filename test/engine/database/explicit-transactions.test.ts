import { describe } from "vitest";
import { commonOptions } from "./open.ts";

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
  describe("transaction", async () => {
    await import("./transaction.test.ts");
  });
});
