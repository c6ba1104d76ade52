import { describe, expect, test, vi } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { readPolicyMatrix } from "../../../operations/inspect/policy-matrix.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";

const SCHEMA = `
  create table notes (id int generated always as identity primary key, owner text not null, words text not null default '');
  insert into notes (owner) values ('1'), ('1'), ('2');
  alter table notes enable row level security;
  create policy own on notes to authenticated
    using (owner = current_setting('request.jwt.claims', true)::json ->> 'sub');
  create policy everything on notes to admin using (true);
  grant select, insert (owner, words), update (words), delete on notes to authenticated, admin;
  create table answers (note int not null references notes);
  insert into answers values (3);
  grant select, insert, delete on answers to anon;
  create table parts (note int not null, text text not null);
  insert into parts select 1, 'of another user' from generate_series(1, 100);
  insert into parts values (3, 'of the second user');
  alter table parts enable row level security;
  create policy of_own_notes on parts to authenticated using (exists (select from notes where id = note));
  grant select, insert, delete on parts to authenticated;
  create function stubborn() returns trigger language plpgsql as $$ begin raise 'no' using errcode = 'LOGIN'; end $$;
  create trigger stubborn before insert on answers for each row execute function stubborn();
`;

const database = useDatabase({ template: "empty" });

const contextOf = (role: string, sub?: string) => ({
  role,
  settings: [["request.jwt.claims", JSON.stringify({ role, sub })]] as const,
});

describe("readPolicyMatrix", () => {
  test("reports the rows that each caller can access, by table and command, and changes nothing", async () => {
    const contexts = [
      contextOf("anon"),
      contextOf("authenticated", "1"),
      contextOf("authenticated", "2"),
      contextOf("admin", "3"),
    ];
    const sent: string[] = [];
    const [matrix, left] = await withClient(database.ownerUrl, async (owner) => {
      await owner.query(SCHEMA);
      const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
      const { catalog } = await loadCatalog(owner, options);
      const rows = await withClient(database.url, async (login) => {
        const queries = vi.spyOn(login, "query");
        const read = await readPolicyMatrix({ catalog, contexts, login, owner });
        // Only the attempts are sent as a parameter.
        sent.push(...queries.mock.calls.flatMap(([, values]) => (values as unknown as string[] | undefined) ?? []));
        return read;
      });
      const { rows: counted } = await owner.query("select count(*)::int from notes");
      return [rows, counted[0].count];
    });
    const lines = matrix.map(({ table, verb, total, outcomes }) =>
      [
        table.name,
        verb,
        ...outcomes.map((each) =>
          "count" in each ? `${each.count}/${total}` : "code" in each ? each.code : each.kind,
        ),
      ].join(" "),
    );
    expect(lines).toEqual([
      "answers select 1/1 denied denied denied",
      "answers insert LOGIN denied denied denied",
      "answers update denied denied denied denied",
      "answers delete 1/1 denied denied denied",
      "notes select denied 2/3 1/3 3/3",
      "notes insert denied allowed allowed allowed",
      "notes update denied 2/3 1/3 3/3",
      "notes delete denied 2/3 allowed allowed",
      "parts select denied 100/101 1/101 101/101",
      "parts insert denied allowed allowed allowed",
      "parts update denied denied denied denied",
      "parts delete denied 100/101 1/101 101/101",
    ]);
    expect(left).toBe(3);
    // The settings are set by statements, which Citus passes on to its workers.
    expect(JSON.parse(sent[0]!)[0].settings).toEqual([
      "set local citus.propagate_set_commands = 'local'",
      `set local "request.jwt.claims" = '{"role":"anon"}'`,
      `set local "role" = 'anon'`,
    ]);
  });
});
