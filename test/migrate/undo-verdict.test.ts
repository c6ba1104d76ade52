import { beforeAll, describe, expect, test } from "vitest";
import { readComparedSchema } from "../../migrate/drift.ts";
import { rehearseMigrations } from "../../migrate/rehearse.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { shareOf } from "../property-runs.ts";
import { ownHistories } from "./own-histories.ts";
import { FINAL, FIXTURE, UNDOABLE } from "./undo-corpus.ts";

const own = useFixture(() => ownHistories([]));
beforeAll(() => own.rows(FIXTURE));

/** Applies the migration to the database as if that were a copy, and returns the verdict. */
async function judge(sql: string, { withRows = true, url = own.settings.url } = {}) {
  await own.write("project", "0010-change.sql", sql);
  const statements = await rehearseMigrations({ ...own.settings, url }, { originalUrl: url, withRows });
  expect(statements.slice(0, -1).map(({ undo }) => undo)).toEqual(statements.slice(1).map(() => null));
  return statements.at(-1)!.undo!;
}

const TABLES = ["authors", "notes", "lines", "empty"];

async function readAll() {
  const rows = [];
  for (const table of TABLES) rows.push(await own.rows(`select * from only public.${table} as stored order by stored`));
  const { statements, tableParts } = await readComparedSchema(own.settings.url);
  const inOrder = (parts: typeof statements) =>
    parts.map(({ object, statement }) => `${object}: ${statement}`).toSorted();
  return { statements: inOrder(statements), lines: inOrder(tableParts), rows };
}

describe("a migration that can be undone", () => {
  test.each(shareOf(UNDOABLE))("%s", async (sql) => {
    const before = await readAll();
    const undo = await judge(sql);
    expect(undo).toMatchObject({ verdict: "can be undone" });
    if (undo.verdict === "can be undone") await own.rows(`begin; ${undo.sql} commit`);
    expect(await readAll()).toEqual(before);
  });
});

/** Judges a migration in a database of its own, which it leaves changed. */
async function judgeFinal(sql: string, withRows: boolean) {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, (client) => client.query(FIXTURE));
    if (!withRows) await withClient(database.ownerUrl, (client) => client.query("analyze"));
    return await judge(sql, { withRows, url: database.ownerUrl });
  } finally {
    await database.drop();
  }
}

describe("a migration that cannot be undone", () => {
  test.each(shareOf(FINAL))("%s", async (sql, reason, line) => {
    const undo = await judgeFinal(sql, true);
    expect(undo).toMatchObject({ verdict: "cannot be undone", reason });
    expect(undo).toHaveProperty("statement", line === null ? null : expect.objectContaining({ line }));
  });

  test.each([
    "update public.notes set stars = 7",
    "alter table public.lines alter column note type bigint",
    "truncate public.lines",
  ])("in a copy without rows: %s", async (sql) => {
    const undo = await judgeFinal(sql, false);
    expect(undo).toMatchObject({
      verdict: "cannot be undone",
      reason: "It writes rows, and without a copy of the rows nothing shows that a reverse restores them.",
    });
  });
});

test("cuts no text that is longer than the former type, and names the columns whose values may not fit", async () => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, (client) =>
      client.query(`${FIXTURE}; alter table public.notes add column label varchar(3)`),
    );
    const widened = await judge("alter table public.notes alter column label type varchar(9)", {
      url: database.ownerUrl,
    });
    expect(widened).toEqual({
      verdict: "can be undone",
      sql: "alter table public.notes alter column label type character varying(3);",
      drops: ["the values of column label of table public.notes that character varying(3) cannot hold"],
    });
    await withClient(database.ownerUrl, async (client) => {
      await client.query("update public.notes set label = 'too long'");
      await expect(
        client.query("alter table public.notes alter column label type character varying(3)"),
      ).rejects.toThrow("value too long");
    });
  } finally {
    await database.drop();
  }
});

test("says what the reverse is", async () => {
  const undo = await judgeFinal(
    "alter table public.notes rename column code to label; create index on public.notes (label)",
    true,
  );
  expect(undo).toEqual({
    verdict: "can be undone",
    sql: "alter table public.notes rename column label to code;\ndrop index public.notes_label_idx;",
    drops: [],
  });
});
