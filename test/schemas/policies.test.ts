import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { compareList, crawlGraphQL, readShapes } from "./crawl-graphql.ts";
import { followChanges, isTold, loggedRows } from "./crawl-realtime.ts";
import { compareResourceRows, crawlResourceInterface } from "./crawl-resource-interface.ts";
import { compareTableRows, crawlTableInterface } from "./crawl-table-interface.ts";
import { canonical } from "./exact.ts";
import { unexpected } from "./expected-differences.ts";
import { Findings } from "./findings.ts";
import { PUBLIC_SCHEMAS, type PublicSchema, schemaOf } from "./public-schemas.ts";
import { qualified, quoted } from "./rows.ts";
import { type Caller, type Served, serveSchema } from "./served.ts";

/** Returns the number of rows, including those that a policy may hide. */
async function rowsOfAll({ owner, tables }: Served): Promise<number> {
  let count = 0;
  for (const table of tables) count += (await owner.query(`select from ${qualified(table)}`)).rowCount ?? 0;
  return count;
}

async function rowsOf({ sql, tables }: Served): Promise<number> {
  let count = 0;
  for (const table of tables) count += (await sql(`select 1 as one from ${qualified(table)}`)).length;
  return count;
}

/** The owner changes every row, and each caller receives the changes of rows that it may read. */
async function compareChanges(served: Served, findings: Findings): Promise<void> {
  const { owner, tables } = served;
  const stored = tables.filter((table) => isTold(table) && table.primaryKey.length > 0);
  const response = await followChanges(served, async () => {
    await owner.query("set session_replication_role = replica");
    for (const table of stored) {
      const { name } = table.columns.find(({ generated }) => !generated)!;
      await owner.query(`update ${qualified(table)} set ${quoted(name)} = ${quoted(name)}`);
    }
    await owner.query("set session_replication_role = origin");
  });
  for (const table of stored) {
    const expected = [...(await loggedRows(served, table))].sort();
    const got = response.filter((each) => each.table === table.name).map(({ record }) => canonical(record));
    findings.note("realtime", table.name, "update", expected.join() === got.sort().join(), expected.join(), got.join());
  }
}

describe("policies that read the claims of a token", () => {
  const chat: PublicSchema = schemaOf("chat.sql", { title: "Chat", role: "authenticated" });
  const served = useFixture(() => serveSchema(chat, { rows: 0 }));

  test.each<[string, Caller, number]>([
    ["a stranger", { role: "anon" }, 5],
    ["ann", { role: "authenticated", claims: { sub: "ann" } }, 11],
    ["bob", { role: "authenticated", claims: { sub: "bob" } }, 12],
    ["somebody without a channel", { role: "authenticated", claims: { sub: "cleo" } }, 5],
  ])("show %s the same on four interfaces as in SQL", async (_who, caller, count) => {
    const own = served.as(caller);
    const findings = new Findings();
    const shapes = await readShapes(own, findings);
    for (const table of own.tables) {
      await crawlTableInterface(own, table, findings);
      await crawlResourceInterface(own, table, findings);
      await crawlGraphQL(own, shapes, table, findings);
    }
    await compareChanges(own, findings);
    expect(unexpected(findings.differences)).toEqual([]);
    expect(await rowsOf(own)).toBe(count);
  });

  test("make a difference that the comparison detects if one side does not apply them", async () => {
    const findings = new Findings();
    const mixed = { ...served.as({ role: "anon" }), sql: served.as({ role: "service_role" }).sql };
    for (const table of mixed.tables) {
      await compareTableRows(mixed, table, findings);
      await compareResourceRows(mixed, table, findings);
    }
    expect(findings.differences.map(({ interface: where, subject }) => `${where} ${subject}`).sort()).toEqual([
      "resource channels",
      "resource members",
      "resource messages",
      "resource open_messages",
      "table channels",
      "table members",
      "table messages",
      "table open_messages",
    ]);
  });
});

describe("policies that read the role, in a foreign schema", () => {
  const [one, two, other] = ["logto_tenant_one", "logto_tenant_two", "logto_stranger"] as const;
  const served = useFixture(() => serveSchema({ ...PUBLIC_SCHEMAS.logto, ownRoles: [one, two, other] }));

  test.each([one, two, other])("show %s the same on four interfaces as in SQL", async (role) => {
    const own = served.as({ role });
    const findings = new Findings();
    const shapes = await readShapes(own, findings);
    for (const table of own.tables) {
      await compareTableRows(own, table, findings);
      await compareResourceRows(own, table, findings);
      await compareList(own, shapes.of.get(table.name)!, findings);
    }
    await compareChanges(own, findings);
    expect(unexpected(findings.differences)).toEqual([]);
    expect(await rowsOf(own)).toBeLessThan(await rowsOfAll(own));
  });

  test("show each tenant some rows", async () => {
    expect(await rowsOf(served.as({ role: one }))).toBeGreaterThan(5);
    expect(await rowsOf(served.as({ role: two }))).toBeGreaterThan(0);
  });
});
