import { describe, expect, test } from "vitest";
import { logSlowStatements } from "../../../postgres/database/observe-statements.ts";
import { useFixture } from "../../fixture.ts";
import { caller, open, PID, sql } from "./open.ts";

const lines: Record<string, unknown>[] = [];
const log = { warn: (line: object) => void lines.push(line as Record<string, unknown>) };
const said = () => lines.splice(0);
/** On a busy machine any other statement may be slow, too. */
const saidOf = (statement: string) => said().filter((line) => line.statement === statement);

const client = {
  ...caller("anon"),
  settings: [
    ["request.id", "request-17"],
    ["request.interface", "table"],
  ] as const,
};
const slow = sql("select n::text, pg_sleep(0.3)::text from generate_series(1, 2) n where $1 <> ''", "a value");

const opened = useFixture(() => open("", { observe: logSlowStatements({ log, milliseconds: 500 }) }));

describe("the log of slow statements", () => {
  test("has a line for a slow statement, with its request and its session, and without values", async () => {
    await opened.database.run(client, slow, { readOnly: true });
    const [line, ...others] = saidOf(slow.text);
    expect(others).toEqual([]);
    expect(line).toMatchObject({
      request: "request-17",
      interface: "table",
      role: "anon",
      rows: 2,
      statement: slow.text,
    });
    expect(line!.inPostgres).toBeGreaterThan(500);
    expect(line!.bytes).toBeGreaterThan(0);
    const { rows } = await opened.owner.query("select from pg_stat_activity where pid = $1", [line!.pid]);
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(line)).not.toContain("a value");
  });

  test("has none for a statement below the threshold", async () => {
    const patient = await open("", { observe: logSlowStatements({ log, milliseconds: 3_600_000 }) });
    try {
      await patient.database.run(client, slow, { readOnly: true });
      expect(saidOf(slow.text)).toEqual([]);
    } finally {
      await patient[Symbol.asyncDispose]();
    }
  });

  test("has one for a failed statement, in transactions and in streams too", async () => {
    const { database } = opened;
    const failing = sql("select 1 / (pg_sleep(0.6)::text = 'x')::int");
    await expect(database.run(client, failing)).rejects.toMatchObject({ code: "22012" });
    expect(saidOf(failing.text)).toMatchObject([{ code: "22012" }]);
    await database.transaction(client, async (query) => {
      await query(PID);
      await query(slow);
    });
    expect(saidOf(slow.text)).toMatchObject([{ rows: 2 }]);
    for await (const chunk of database.stream(client, slow, { separator: "," })) chunk.release();
    expect(saidOf(slow.text)).toMatchObject([{ rows: 2 }]);
  });

  test("distinguishes the wait for a connection from the time in Postgres", async () => {
    const one = await open("", { poolSize: 4, observe: logSlowStatements({ log, milliseconds: 500 }) });
    try {
      await Promise.all(Array.from({ length: 8 }, () => one.database.run(client, slow)));
      const found = saidOf(slow.text).map((line) => [line.waited, line.inPostgres, line.milliseconds].map(Number));
      expect(found).toHaveLength(8);
      // The second half waits for the first one.
      expect(Math.max(...found.map(([waited]) => waited!))).toBeGreaterThan(500);
      for (const [waited, inPostgres, took] of found) {
        expect(inPostgres).toBeGreaterThan(500);
        expect(waited! + inPostgres!).toBeCloseTo(took!, 0);
      }
    } finally {
      await one[Symbol.asyncDispose]();
    }
  });
});
