import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { alice, anonymous, asCaller, bob, type Caller, service } from "../db/callers.ts";

const GUIDE = join(import.meta.dirname, "../../docs/database-guide.md");

/** The error of each SQL block, in order; null if it ran. */
const failures: (string | null)[] = [];

const database = useDatabase({
  template: "platform",
  sql: `insert into auth.users (username, email) values
    ('alice', 'alice@example.org'), ('bob', 'bob@example.org'), ('carol', 'carol@example.org')`,
});
const owner = useClient(database.ownerUrl);
const login = useClient(database.url);
beforeAll(async () => {
  const blocks = [...(await readFile(GUIDE, "utf8")).matchAll(/^```sql\n(.*?)^```$/gms)].map(([, text]) => text!);
  for (const block of blocks) {
    failures.push(
      await owner.query(block).then(
        () => null,
        (error: pg.DatabaseError) => `${error.message}\n${block}`,
      ),
    );
  }
  await owner.query(`
    insert into public.notes (owner_id, title, published, tenant) values
      (1, 'draft', false, ''), (1, 'public', true, ''), (2, 'of Bob', false, ''), (1, 'elsewhere', true, 'acme')`);
});

const titles = (caller: Caller) =>
  asCaller(login, caller, async () => {
    const { rows } = await login.query<{ title: string }>("select title from public.notes order by id");
    return rows.map(({ title }) => title);
  });

describe("the database guide", () => {
  test("has SQL that runs unchanged", () => {
    expect(failures.filter((failure) => failure !== null)).toEqual([]);
    expect(failures.length).toBeGreaterThan(5);
  });

  test("the recipes show published rows to anonymous callers, own rows to owners, and no rows of other tenants", async () => {
    expect(await titles(anonymous)).toEqual(["public"]);
    expect(await titles(alice)).toEqual(["draft", "public"]);
    expect(await titles(bob)).toEqual(["public", "of Bob"]);
  });

  test("the notes of a team are visible to its members, who can put notes into no other team", async () => {
    await asCaller(login, service, async () => {
      const { rowCount } = await login.query("insert into public.members values (7, 1), (8, 2)");
      expect(rowCount).toBe(2);
    });
    onTestFinished(async () => {
      await owner.query("delete from public.notes where title = 'of team 7'; delete from public.members");
    });
    await owner.query("insert into public.members values (7, 1), (8, 2)");
    await owner.query("insert into public.notes (owner_id, title, tenant, team_id) values (2, 'of team 7', '', 7)");
    const { rows } = await owner.query("select id from public.notes where title = 'of Bob'");
    const noteOfBob = rows[0].id;
    expect(await titles(alice)).toContain("of team 7");
    expect(await titles({ role: "authenticated", sub: "3" })).not.toContain("of team 7");

    const insert = (caller: Caller, team: number | null) =>
      asCaller(login, caller, async () => {
        const statement = "insert into public.notes (title, team_id) values ('new', $1) returning team_id";
        return (await login.query(statement, [team])).rows[0].team_id;
      });
    const move = (caller: Caller, team: number | null) =>
      asCaller(login, caller, async () => {
        return (await login.query("update public.notes set team_id = $1 where id = $2", [team, noteOfBob])).rowCount;
      });
    expect([await insert(alice, 7), await insert(alice, null)]).toEqual(["7", null]);
    await expect(insert(alice, 8)).rejects.toThrow('violates row-level security policy "insert_into_own_team"');
    expect([await move(bob, 8), await move(bob, null), await move(alice, 7)]).toEqual([1, 1, 0]);
    await expect(move(bob, 7)).rejects.toThrow('violates row-level security policy "update_into_own_team"');
  });

  test("a discarded note is hidden from clients and kept in the table, and only its owner can discard it", async () => {
    const discard = (caller: Caller, title: string) =>
      asCaller(login, caller, async () => {
        await login.query("select public.discard(note) from public.notes as note where title = $1", [title]);
        const { rows } = await login.query("select title from public.notes where title = $1", [title]);
        return rows.length;
      });
    expect(await discard(alice, "draft")).toBe(0);
    expect(await discard(bob, "public")).toBe(1);
    await expect(asCaller(login, alice, () => login.query("delete from public.notes"))).rejects.toThrow(
      "permission denied",
    );
  });

  test("the computed column and the deprecated version exist", async () => {
    const headline = await asCaller(login, anonymous, () => login.query("select notes_headline(n) from notes as n"));
    expect(headline.rows).toEqual([{ notes_headline: "PUBLIC" }]);
    expect((await owner.query("select status from api.versions where number = 1")).rows).toEqual([
      { status: "deprecated" },
    ]);
  });
});
