import { expect, test } from "vitest";
import { tryStatements } from "../../../operations/inspect/try-statements.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";

const database = useDatabase({ template: "empty", sql: "create table public.notes (id int primary key, text text)" });

const attempt = (sql: string) =>
  tryStatements(sql, { url: database.ownerUrl, connectTimeoutMs: 5_000, signal: new AbortController().signal });

test("each statement is named by its line and its tag, with the notices of Postgres", async () => {
  const { text, hasFailed } = await attempt(`alter table public.notes
  add at date;

create table if not exists public.notes ();`);
  expect(text.replaceAll(/[\d.]+ ms/g, "… ms")).toBe(`line 1: ALTER TABLE, … ms
line 4: CREATE TABLE, … ms
NOTICE 42P07: relation "notes" already exists, skipping
All statements succeed. They were rolled back.`);
  expect(hasFailed).toBe(false);
});

test("an error has its line and hint, and what came before it", async () => {
  const { text, hasFailed } = await attempt(
    "insert into public.notes values (1);\nselect\n  id, txt from public.notes",
  );
  expect(text.replaceAll(/[\d.]+ ms/g, "… ms")).toBe(`line 1: INSERT 0 1, … ms
ERROR 42703 (line 3): column "txt" does not exist
  Perhaps you meant to reference the column "notes.text".
Everything was rolled back.`);
  expect(hasFailed).toBe(true);
});

test.each(["commit", "begin", "create index concurrently on public.notes (text)", "prepare transaction 'x'"])(
  "%s does not end the transaction, after which nothing of it is left",
  async (statement) => {
    const { hasFailed } = await attempt(
      `insert into public.notes values (2);\n${statement};\ninsert into public.notes values (3)`,
    );
    expect(hasFailed).toBe(true);
    const { rows } = await withClient(database.ownerUrl, (client) => client.query("select id from public.notes"));
    expect(rows).toEqual([]);
  },
);

test("a constraint that a commit would check fails as it would", async () => {
  const { text, hasFailed } = await attempt(`
    create table public.pages (id int primary key, next int references public.pages deferrable initially deferred);
    insert into public.pages values (1, 2)`);
  expect([text.includes("ERROR 23503"), hasFailed]).toEqual([true, true]);
});

test("it does not wait longer than a second for a lock", async () => {
  await withClient(database.ownerUrl, async (holder) => {
    await holder.query("begin; lock table public.notes");
    const { text } = await attempt("alter table public.notes add at date");
    expect(text).toContain("ERROR 55P03: canceling statement due to lock timeout");
  });
});
