import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { runCommand } from "./run-command.ts";

const SCHEMA = `
  create extension hstore schema public;
  create table public.notes (id int primary key, owner text not null, shown boolean not null, gone boolean not null);
  insert into public.notes values (1, '7', false, false), (2, '8', false, false), (3, '8', true, false), (4, '7', true, true);
  alter table public.notes enable row level security;
  create policy own on public.notes for select to authenticated using (owner = (select auth.jwt()) ->> 'sub');
  create policy shown on public.notes for select using (shown);
  create policy not_gone on public.notes as restrictive for select using (not gone);
  create policy write_own on public.notes for update using (true);
  grant select (id, shown, gone) on public.notes to anon;
  grant select on public.notes to authenticated;
  create table public.budgets (org numeric primary key);
  insert into public.budgets values (9007199254740992), (9007199254740993);
  alter table public.budgets enable row level security;
  create policy own on public.budgets for select using (org = (auth.jwt() ->> 'org')::numeric);
  grant select on public.budgets to authenticated;
  create table public.closed (id int primary key);
  create view public.over_closed with (security_invoker = true) as select * from public.closed;
  grant select on public.over_closed to anon;
  create table public.whole (id int primary key);
  grant select on public.whole to anon;
  create function public.hidden(public.whole) returns int language sql stable as 'select 1';
  revoke execute on function public.hidden from public;
  create table public.loops (id int primary key);
  alter table public.loops enable row level security;
  create policy around on public.loops for select using (exists (select from public.loops));
  grant select on public.loops to anon;
  create table public.notes_of (id int primary key, note_id int not null references public.notes);
  insert into public.notes_of values (1, 1), (2, 2);
  alter table public.notes_of enable row level security;
  create policy of_visible_notes on public.notes_of for select using (exists (select from public.notes where notes.id = note_id));
  create policy to_visible_notes on public.notes_of for insert with check (exists (select from public.notes where notes.id = note_id));
  create policy from_visible_notes on public.notes_of for delete using (exists (select from public.notes where notes.id = note_id));
  grant select, insert, delete on public.notes_of to authenticated;
  create policy add_own on public.budgets for insert with check (org = (auth.jwt() ->> 'org')::numeric);
  grant insert on public.budgets to authenticated;
  create table public.drafts (id int primary key, owner text not null default (auth.jwt() ->> 'sub'), state text not null);
  insert into public.drafts values (1, '7', 'open'), (2, '8', 'open');
  alter table public.drafts enable row level security;
  create policy own on public.drafts to authenticated using (owner = (auth.jwt() ->> 'sub'))
    with check (owner = (auth.jwt() ->> 'sub') and state <> 'closed');
  grant select, insert, update (state), delete on public.drafts to authenticated;
  create table public.unread (id int primary key);
  alter table public.unread enable row level security;
  create policy add on public.unread for insert with check (true);
  grant select on public.unread to authenticated;
  create table public.reports (id int primary key);
  alter table public.reports enable row level security;
  create policy send on public.reports for insert with check (true);
  create policy send_again on public.reports for select using (id > 7);
  grant insert on public.reports to anon, authenticated;
  grant select on public.reports to authenticated;
  create table public.papers (id int primary key, data jsonb, tags public.hstore, span interval);
  insert into public.papers values (1, 'null', 'by=>me', '-1 day 2 hours'), (2, null, null, null);
  alter table public.papers enable row level security;
  create policy all_papers on public.papers for select using (true);
  create policy with_data on public.papers for delete using (data is not null and tags is not null and span = '-1 day 2 hours');
  grant select, delete on public.papers to authenticated;
  create table public.sealed (id int primary key, number int);
  alter table public.sealed enable row level security;
  grant insert on public.sealed to authenticated;
  create schema apart;
  create table apart.things (id int primary key, owner text);
  insert into apart.things values (1, '7');
  alter table apart.things enable row level security;
  create policy own on apart.things using (owner = (auth.jwt() ->> 'sub'));
  create table public.lines (text text);
  grant select, insert, delete on public.lines to anon;
`;

const database = useDatabase({ sql: SCHEMA });

const why = (...words: string[]) => runCommand("why", words, database);

describe("npm run why", () => {
  test("prints how many rows are visible, which are hidden, and the result of each policy for those", async () => {
    const { stdout } = await why("--role", "authenticated", "--sub", "7", "/rest/v1/notes?order=id&limit=1");
    expect(stdout).toContain("authenticated sees 2 of 4 rows.");
    expect(stdout).toContain("policy not_gone (restrictive: must pass)\n  (NOT gone)");
    expect(stdout).toContain("hidden id=2\n  not_gone yes, own no, shown no\n");
    expect(stdout).toContain("hidden id=4\n  not_gone no, own yes, shown yes\n");
    expect(stdout).not.toMatch(/hidden id=[13]|write_own/);
    expect(stdout).toMatch(/Execution Time: [\d.]+ ms/);
    expect((await why(...as7, "unread")).stdout).toContain("No policy of unread lets authenticated select rows.");
  });

  test("evaluates a policy as the caller, also where it reads a table with policies of its own", async () => {
    const { stdout } = await why("--role", "authenticated", "--sub", "7", "notes_of");
    expect(stdout).toContain("authenticated sees 1 of 2 rows.");
    expect(stdout).toContain("hidden id=2\n  of_visible_notes no\n");
  });

  test("takes a user by e-mail address, with the role and claims of the account", async () => {
    const add = (...words: string[]) => runCommand("user", ["add", "--name", "Ada", ...words], database);
    const { stdout: added } = await add("--email", "ada.why@example.org");
    const id = /user (\d+)/.exec(added)![1];
    await withClient(database.ownerUrl, (client) =>
      client.query(
        "insert into public.notes select 70 + n, $1::text::int, false, false from generate_series(1, 2) as n",
        [id],
      ),
    );
    try {
      const { stdout, stderr } = await why("--user", "ada.why@example.org", "notes?id=gt.70");
      expect(stderr).toBe("");
      expect(stdout).toContain("authenticated sees 2 of 2 rows.");
      const otherClaims = ["--claims", '{"sub": "8"}'];
      expect((await why("--user", "ada.why@example.org", ...otherClaims, "notes?id=gt.70")).stdout).toContain(
        "authenticated sees 0 of 2 rows.",
      );
      const mixed = await why("--user", "ada.why@example.org", "--sub", "7", "notes");
      expect([mixed.code, mixed.stderr]).toEqual([2, expect.stringContaining("cannot be combined")]);
      const unknown = await why("--user", "nobody@example.org", "notes");
      expect([unknown.code, unknown.stderr]).toEqual([1, 'User "nobody@example.org" not found.\n']);
      const number = await why("--user", "7", "notes");
      expect(number.stderr).toBe('User "7" not found. A number is given with --role and --sub 7.\n');
    } finally {
      await withClient(database.ownerUrl, (client) => client.query("delete from public.notes where id > 70"));
    }
  });

  test("keeps all digits of numbers in claims", async () => {
    const { stdout } = await why("--role", "authenticated", "--claims", '{"org": 9007199254740993}', "budgets");
    expect(stdout).toContain("hidden org=9007199254740992\n");
    expect(stdout).not.toContain("hidden org=9007199254740993");
  });

  test("counts rows by the request's filters, including those of relations, and names columns that may not be selected", async () => {
    const { stdout } = await why("notes?select=id&shown=is.true");
    expect(stdout).toContain("anon sees 1 of 2 rows.");
    expect(stdout).toContain("Columns that anon may not select: owner.");
  });

  const as7 = ["--role", "authenticated", "--sub", "7"] as const;

  test("explains a request to the conventional interface: a list, its filters, a row, and rows within a row", async () => {
    const list = (await why(...as7, "/api/v1/notes?limit=1&sort=owner")).stdout;
    expect(list).toContain("authenticated sees 2 of 4 rows.");
    expect(list).toContain("hidden id=2\n  not_gone yes, own no, shown no\n");
    expect(list).toMatch(/Execution Time/);
    expect((await why(...as7, "/api/v1/notes?shown=true")).stdout).toContain("authenticated sees 1 of 2 rows.");
    expect((await why(...as7, "/api/v1/notes/4")).stdout).toContain("hidden id=4\n  not_gone no, own yes, shown yes\n");
    expect((await why("/users/1/articles")).stdout).toContain("anon sees 0 of 0 rows.");
    expect((await why("/api/v1/notes?wrong=1")).stderr).toContain("anon gets 400 VALIDATION_ERROR");
    expect((await why("/api/v1/nothing")).stderr).toContain("anon gets 404 RESOURCE_NOT_FOUND");
    expect((await why("/api/v1/notes?fields=id,owner")).stderr).toContain("anon gets");
  });

  test("takes the whole address of a request", async () => {
    const { stdout } = await why(...as7, "http://127.0.0.1:3000/rest/v1/notes?select=id&shown=is.true");
    expect(stdout).toContain("authenticated sees 1 of 2 rows.");
    expect((await why(...as7, "https://api.example.org/api/v1/notes?shown=true")).stdout).toContain(
      "sees 1 of 2 rows.",
    );
  });

  test("explains which changes a subscription is sent, and that a table is not published", async () => {
    const subscription = "/realtime/v1?schema=public&table=notes&filter=";
    const { stdout } = await why(...as7, `${subscription}id=in.(1,2,3)`);
    expect(stdout).toContain("authenticated sees 2 of 3 rows.");
    expect(stdout).toContain("hidden id=2\n  not_gone yes, own no, shown no\n");
    expect(stdout).not.toContain("not published");
    expect((await why(...as7, `${subscription}owner=neq.7,shown=is.true`)).stdout).toContain("sees 1 of 1 rows.");
    await withClient(database.ownerUrl, (client) =>
      client.query("alter publication supabase_realtime drop table public.notes"),
    );
    expect((await why(...as7, subscription)).stdout).toMatch(
      /^Changes of notes are not sent, because it is not published: alter publication supabase_realtime add table "public"\."notes";\n/,
    );
    expect(await why("/realtime/v1?schema=public")).toMatchObject({ code: 2 });
  });

  test("explains the statement of a GraphQL query, and rejects mutations", async () => {
    const { stdout } = await why(...as7, "{ notes(first: 3) { totalCount edges { node { id } } } }");
    expect(stdout).toContain("authenticated sees 2 of 3 rows of notes.edges.");
    expect(stdout).toContain("With the same options, npm run why -- notes says which rows of notes are hidden");
    expect(stdout).toContain(
      "authenticated gets 2 as notes.totalCount; a role that bypasses row-level security gets 4.",
    );
    expect(stdout).toContain("policy not_gone (restrictive: must pass)\n  (NOT gone)");
    expect(stdout).toMatch(/Execution Time/);
    expect((await why("{ notes { edges { node { owner } } } }")).stderr).toContain(
      'Missing: grant select ("owner") on "public"."notes" to "anon";',
    );
    const rows =
      "{ hidden: note(id: 2) { id } shown: note(id: 1) { id } notes(first: 4) { edges { node { notesOfs { id } } } } }";
    const parts = (await why(...as7, rows)).stdout;
    expect(parts).toContain(
      'authenticated gets null as hidden; a role that bypasses row-level security gets {"id":"2"}.',
    );
    expect(parts).toContain("authenticated gets the same shown.id as a role that bypasses row-level security.");
    expect(parts).toContain("authenticated sees 2 of 4 rows of notes.edges.");
    expect(parts).toContain("authenticated sees 1 of 2 rows of notes.edges.node.notesOfs.");
    for (const text of ["{ nothing }", "{ notes", "{ __typename }", "{ notes(first: -1) { totalCount } }"]) {
      expect(await why(text)).toMatchObject({ code: 2, stderr: expect.not.stringMatching(/^ +at /m) });
    }
    expect((await why("query { me { id } } mutation { __typename }")).code).toBe(2);
  });

  test("says after changes of which tables a live read runs again, and who shares its result; or why it cannot be live", async () => {
    const live = async (...words: string[]) =>
      (await why(...words)).stdout.split("\n").find((line) => /^(?:Not l|L)ive/.test(line));
    await withClient(database.ownerUrl, (client) =>
      client.query(`
        create table public.guests (room int, person text, primary key (room, person));
        create table public.letters (id int primary key, room int not null);
        alter table public.letters enable row level security;
        create policy of_guests on public.letters for select using (
          exists (select from public.guests g where g.room = letters.room and g.person = (select auth.jwt()) ->> 'sub'));
        create table public.pins (id int primary key, until timestamptz);
        alter table public.pins enable row level security;
        create policy not_past on public.pins for select using (until > now());
        grant select on public.guests, public.letters, public.pins to authenticated;
        alter publication supabase_realtime set table public.guests, public.letters, public.pins, public.budgets`),
    );
    const letters =
      "Live: runs again after changes of public.guests, public.letters; callers as authenticated share the result if these claims are equal: sub.";
    expect(await live(...as7, "letters?select=id")).toBe(letters);
    expect(await live(...as7, "/api/v1/letters")).toBe(letters);
    expect(await live(...as7, "guests")).toBe(
      "Live: runs again after changes of public.guests; all callers as authenticated share the result.",
    );
    expect(await live(...as7, "pins")).toBe("Not live: it depends on the time.");
    expect(await live("whole?select=id")).toBe(
      "Not live: the table public.whole is not in the publication of row changes.",
    );
  });

  describe("of a write", () => {
    test("says which policy refuses a new row, whose other columns have their defaults", async () => {
      const insert = async (body: object) =>
        (await why(...as7, "--insert", "--body", JSON.stringify(body), "drafts")).stdout;
      const refused = await insert({ id: 3, state: "closed" });
      expect(refused).toMatch(/^Policies do not let authenticated insert this row\.\n/);
      expect(refused).toContain("with check ((owner = (auth.jwt() ->> 'sub'::text)) AND (state <> 'closed'::text))");
      expect(refused).toContain("refused the new row\n  insert, of the row as written: own no\n");
      const allowed = await insert({ id: 3, state: "open" });
      expect(allowed).toMatch(/^Privileges and policies let authenticated insert this\.\nIf it was refused, a trigger/);
      expect(allowed).not.toContain("refused the new row");
    });

    test("says that a new row may be added and not be returned, and what is missing for that", async () => {
      const insert = async (id: number, ...caller: string[]) =>
        (await why(...caller, "--insert", "--body", `{"id": ${id}}`, "reports")).stdout;
      const hidden = await insert(7, ...as7);
      expect(hidden).toMatch(/^Privileges and policies let authenticated insert this\./);
      expect(hidden).toContain("But authenticated may not read the new row, so an insert that returns it is refused");
      expect(hidden).toContain("  select, of the row as written: send_again no\n");
      expect(hidden).toContain("\npolicy send_again\n");
      expect(await insert(8, ...as7)).not.toMatch(/may not read|send_again/);
      const unreadable = await insert(8);
      expect(unreadable).toContain("But anon may not read the new row");
      expect(unreadable).toContain('Missing: grant select on "public"."reports" to "anon";\n');
    });

    test("explains each row of an array", async () => {
      const body = JSON.stringify([
        { id: 3, state: "open" },
        { id: 4, state: "closed" },
      ]);
      const { stdout } = await why(...as7, "--insert", "--body", body, "drafts");
      expect(stdout).toMatch(/^Row 1 of 2:\nPrivileges and policies let authenticated insert this\./);
      expect(stdout).toContain("\n\nRow 2 of 2:\nPolicies do not let authenticated insert this row.\n");
    });

    test("evaluates a policy as the caller, also where it reads a table with policies of its own", async () => {
      const insert = async (body: string) => (await why(...as7, "--insert", "--body", body, "notes_of")).stdout;
      expect(await insert('{"id": 3, "note_id": 2}')).toContain(
        "refused the new row\n  insert, of the row as written: to_visible_notes no\n",
      );
      expect(await insert('{"id": 3, "note_id": 1}')).toMatch(
        /^Privileges and policies let authenticated insert this\./,
      );
      const { stdout } = await why(...as7, "--delete", "notes_of");
      expect(stdout).toMatch(/^Policies do not let authenticated delete 1 of 2 rows\.\n/);
      expect(stdout).toContain("refused id=2\n  select, of the row as it is: of_visible_notes no\n");
    });

    test("evaluates a policy on all values as the row has them", async () => {
      const { stdout } = await why(...as7, "--delete", "papers");
      expect(stdout).toMatch(/^Policies do not let authenticated delete 1 of 2 rows\.\n/);
      expect(stdout).toContain("refused id=2\n");
    });

    test("says that no policy allows a row before it looks at its values", async () => {
      const { stdout } = await why(...as7, "--insert", "--body", '{"number": "none"}', "sealed");
      expect(stdout).toContain("No policy of sealed lets authenticated insert rows.");
    });

    test("keeps all digits of numbers", async () => {
      const claims = ["--role", "authenticated", "--claims", '{"org": 9007199254740993}'];
      const insert = async (org: string) =>
        (await why(...claims, "--insert", "--body", `{"org": ${org}}`, "budgets")).stdout;
      expect(await insert("9007199254740993")).toMatch(/^Privileges and policies let authenticated insert this\./);
      expect(await insert("9007199254740992")).toMatch(/^Policies do not let authenticated insert this row\./);
    });

    test("tries each row of the request, and changes none", async () => {
      const { stdout } = await why(...as7, "--update", "--body", '{"state": "done"}', "/rest/v1/drafts");
      expect(stdout).toMatch(/^Policies do not let authenticated update 1 of 2 rows\.\n/);
      const checks = [
        "  select, of the row as it is: own no",
        "  update, of the row as it is: own no",
        "  update, of the row as written: own no",
        "  select, of the row as written: own no",
      ];
      expect(stdout).toContain(`refused id=2\n${checks.join("\n")}\n`);
      expect(stdout).not.toContain("refused id=1");
      expect((await why(...as7, "--delete", "/api/v1/drafts/1")).stdout).toMatch(/let authenticated delete this\./);
      expect((await why(...as7, "--delete", "drafts?id=eq.3")).stdout).toMatch(/^The request addresses no row\.\n/);
      const { rows } = await withClient(database.ownerUrl, (client) =>
        client.query("select id, state from public.drafts order by id"),
      );
      expect(rows).toEqual([
        { id: 1, state: "open" },
        { id: 2, state: "open" },
      ]);
    });

    test("prints missing grants, also those of single columns", async () => {
      const owner = (await why(...as7, "--update", "--body", '{"owner": "7"}', "drafts?id=eq.1")).stdout;
      expect(owner.split("\n").slice(0, 4)).toEqual([
        "authenticated lacks a privilege to update here.",
        'Missing: grant update ("owner") on "public"."drafts" to "authenticated";',
        "",
        "policy own",
      ]);
      const apart = await runCommand("why", [...as7, "--delete", "things"], database, { PGRST_DB_SCHEMAS: "apart" });
      expect(apart.stdout).toContain('Missing: grant usage on schema "apart" to "authenticated";');
      expect((await why("--insert", "closed")).stdout).toBe(
        'anon lacks a privilege to insert here.\nMissing: grant insert on "public"."closed" to "anon";\n' +
          "Row-level security is disabled: privileges alone decide.\n",
      );
    });

    test("says why there is nothing to try, or nothing to decide", async () => {
      expect((await why("--delete", "lines")).stdout).toMatch(
        /^lines has no primary key, so its rows cannot be tried\.\n/,
      );
      expect((await why("--role", "service_role", "--insert", "budgets")).stdout).toContain(
        "service_role bypasses row-level security.",
      );
      expect((await why("--insert", "loops")).stdout).toContain("No policy of loops lets anon insert rows.");
    });

    test.each<[words: string[], error: string]>([
      [["--insert", "--delete", "notes"], "Specify one of --insert, --update and --delete."],
      [["--body", "{}", "notes"], "--body is for --insert and --update."],
      [["--delete", "--body", "{}", "notes"], "--body is for --insert and --update."],
      [["--insert", "--body", "[1]", "notes"], "--body must be a JSON object"],
      [["--insert", "--body", "{", "notes"], "--body must be a JSON object"],
      [["--insert", "{ notes { totalCount } }"], "A write is explained for a path below"],
      [["--delete", "/realtime/v1?table=notes"], "A write is explained for a path below"],
      [["mutation Add { createNote { id } }"], "Of GraphQL, only queries are explained."],
      [["/storage/v1/object/avatars/2/me.png"], "Requests for files are not explained:"],
      [["--insert", '{"id": 5}', "notes"], "Write the columns after --body: --insert --body '{\"id\": 5}'"],
    ])("%j is a usage error", async (words, error) => {
      const { code, stdout, stderr } = await why(...words);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr.trimEnd().split("\n").at(-1)).toContain(error);
    });
  });

  test("prints the missing grant for a table, for columns, behind a view and for a function", async () => {
    const missing = async (request: string) => (await why(request)).stderr.split("\n").slice(1, -1);
    expect(await missing("closed")).toEqual(['Missing: grant select on "public"."closed" to "anon";']);
    expect(await missing("notes?select=id,owner")).toEqual([
      'Missing: grant select ("owner") on "public"."notes" to "anon";',
    ]);
    expect(await missing("over_closed")).toEqual(['Missing: grant select on "public"."closed" to "anon";']);
    expect(await missing("whole?select=id,hidden")).toEqual([
      'Missing: grant execute on function "public"."hidden"(public.whole) to "anon";',
    ]);
  });

  test("changes nothing, and prints the error that the caller would get", async () => {
    const { stderr, code } = await why("/rest/v1/notes?select=owner,wrong");
    expect(stderr).toContain("anon gets 400 42703");
    expect(code).toBe(1);
    const looping = await why("loops");
    expect(looping.stderr).toContain("anon gets 500 42P17");
    expect(looping.stderr).toContain('infinite recursion detected in policy for relation "loops"');
    expect((await why("--role", "postgres", "notes")).stderr).toContain('Requests cannot use the role "postgres"');
    expect((await why()).stderr).toContain("Specify one request");
  });
});
