import { describe, expect, test } from "vitest";
import { asLogin } from "../../../postgres/database/transaction.ts";
import { useFixture } from "../../fixture.ts";
import { alice, open, sql } from "./open.ts";

const SCHEMA = `
  create schema closed;
  create table closed.notes (note text);
  create function closed.note(note text) returns void security definer set search_path = '' language sql
    begin atomic insert into closed.notes values (note); end;
  revoke execute on function closed.note from public;
  grant usage on schema closed to authenticator;
  grant execute on function closed.note to authenticator;

  create table changes (said_by text, checked_by text);
  grant all on changes to authenticated, anon;
  create function note_checker() returns trigger language plpgsql as $$ begin
    update changes set checked_by = current_user;
    return null;
  end $$;
  create constraint trigger note_checker after insert on changes deferrable initially deferred
    for each row execute function note_checker();
`;

const opened = useFixture(() => open(SCHEMA));

const NOTE = sql("select closed.note('x')");
const WHO = sql("select current_user, current_setting('request.jwt.claims')");
const notes = async () => (await opened.owner.query("select note from closed.notes")).rowCount;

describe("a statement of the login role in a caller's transaction", () => {
  test("has privileges that the caller lacks, and the transaction continues as the caller", async () => {
    const seen = await opened.database.transaction(alice, async (query) => {
      const before = await query(WHO);
      const inside = await asLogin(query)(sql("select current_user"));
      await asLogin(query)(NOTE);
      const after = await query(WHO);
      return { before: before.rows, inside: inside.rows, after: after.rows };
    });
    expect(seen.inside).toEqual([["authenticator"]]);
    expect(seen.before).toEqual([["authenticated", alice.settings[0]![1]]]);
    expect(seen.after).toEqual(seen.before);
    expect(await notes()).toBe(1);

    const asCaller = opened.database.transaction(alice, (query) => query(NOTE));
    await expect(asCaller).rejects.toMatchObject({ code: "42501" });
  });

  test("keeps a role that a function has set", async () => {
    const role = await opened.database.transaction(alice, async (query) => {
      await query(sql("select set_config('role', 'anon', true)"));
      await asLogin(query)(NOTE);
      return (await query(sql("select current_user"))).rows;
    });
    expect(role).toEqual([["anon"]]);
  });

  test("has ended when deferred triggers run", async () => {
    await opened.database.transaction(alice, async (query) => {
      await query(sql("insert into changes values (current_user)"));
      await asLogin(query)(NOTE);
    });
    const { rows } = await opened.owner.query("select * from changes");
    expect(rows).toEqual([{ said_by: "authenticated", checked_by: "authenticated" }]);
  });

  test("that fails aborts the transaction with its own error", async () => {
    const before = await notes();
    const work = opened.database.transaction(alice, async (query) => {
      await asLogin(query)(NOTE);
      await asLogin(query)(sql("select 1 / 0"));
    });
    await expect(work).rejects.toMatchObject({ code: "22012" });
    expect(await notes()).toBe(before);
  });

  test("may be the first one, and an unknown role is still the caller's error", async () => {
    const work = (role: string) =>
      opened.database.transaction({ role, settings: [] }, async (query) => {
        await asLogin(query)(NOTE);
        return (await query(sql("select current_user"))).rows;
      });
    expect(await work("anon")).toEqual([["anon"]]);
    await expect(work("nobody")).rejects.toMatchObject({ code: "22023" });
  });

  test("leaves no settings on the connection", async () => {
    await opened.database.transaction(alice, (query) => asLogin(query)(NOTE));
    const seen = await opened.database.run(alice, sql("select current_setting('login.role', true), current_user"));
    expect(["", null]).toContain(seen.rows[0]![0]);
    expect(seen.rows[0]![1]).toBe("authenticated");
  });
});
