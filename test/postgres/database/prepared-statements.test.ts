import { describe, expect, test } from "vitest";
import { PreparedStatements } from "../../../postgres/database/prepared-statements.ts";
import { StatementShape } from "../../../postgres/database/statement-shape.ts";

const [first, second, third] = [
  new StatementShape("select 1"),
  new StatementShape("select 2"),
  new StatementShape("select 3"),
];

describe("a connection's prepared statements", () => {
  test("a shape is prepared once", () => {
    const statements = new PreparedStatements(10);
    const prepared = statements.use(first);
    expect(prepared.sent).toBe(false);
    expect(statements.use(first)).toBe(prepared);
    expect(statements.takeClosing()).toEqual([]);
  });

  test("the least recently used one is evicted, and its name is closed once", () => {
    const statements = new PreparedStatements(2);
    statements.use(first);
    const evicted = statements.use(second);
    statements.use(first);
    statements.use(third);
    expect(statements.size).toBe(2);
    expect(statements.takeClosing()).toEqual([evicted.name]);
    expect(statements.takeClosing()).toEqual([]);
  });

  test("long ones are evicted earlier, so that a session does not keep the plans of many of them", () => {
    const statements = new PreparedStatements(100);
    for (let n = 0; n < 8; n++) statements.use(new StatementShape(`select ${n} ${" ".repeat(300_000)}`));
    expect(statements.size).toBe(3);
    expect(statements.takeClosing()).toHaveLength(5);
    statements.dropAll();
    for (let n = 0; n < 50; n++) statements.use(new StatementShape(`select ${n}`));
    expect(statements.size).toBe(50);
  });

  test("no name is ever used twice", () => {
    const statements = new PreparedStatements(1);
    const names = Array.from({ length: 20 }, (_, index) => statements.use(index % 2 ? first : second).name);
    expect(new Set(names).size).toBe(20);
  });

  test("a replaced one gets a new name, and the old one is closed", () => {
    const statements = new PreparedStatements(10);
    const old = statements.use(first);
    const fresh = statements.replace(first);
    expect(fresh.name).not.toBe(old.name);
    expect(statements.use(first)).toBe(fresh);
    expect(statements.takeClosing()).toEqual([old.name]);
  });

  test("removing a failed one keeps its successor", () => {
    const statements = new PreparedStatements(10);
    const failed = statements.use(first);
    const fresh = statements.replace(first);
    statements.forget(failed);
    expect(statements.use(first)).toBe(fresh);
  });

  test("all can be removed", () => {
    const statements = new PreparedStatements(10);
    const names = [statements.use(first).name, statements.use(second).name];
    statements.dropAll();
    expect(statements.size).toBe(0);
    expect(statements.takeClosing()).toEqual(names);
  });

  test("every use is unnamed and unsent if they are disabled, and nothing is closed", () => {
    const statements = new PreparedStatements(0);
    const prepared = statements.use(first);
    prepared.sent = true;
    expect(statements.use(first)).toMatchObject({ name: "", sent: false });
    statements.drop(prepared);
    expect(statements.takeClosing()).toEqual([]);
  });
});
