import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";

const graphql = useFixture(() =>
  serveGraphQL({
    template: "empty",
    before: `
      create table public.ledgers (id int primary key, total numeric);
      create table public.accounts (id int primary key, name text, secret text, ledger int references public.ledgers);
      create table public.entries (
        id int primary key, account_id int not null references public.accounts, ledger_id int references public.ledgers
      );
      create table public.account (id int primary key);
      insert into public.ledgers values (1, 5), (2, 6);
      insert into public.accounts values (1, 'one', 'hush', 1);
      insert into public.entries values (1, 1, 1);
      alter table public.ledgers enable row level security;
      grant usage on schema public to anon, service_role;
      grant select (id, name, ledger), update (name) on public.accounts to anon;
      grant all on public.ledgers, public.accounts to service_role;
      grant select (id, account_id, ledger_id), insert on public.entries to service_role;
      grant select on public.account to service_role`,
  }),
);

const token = tokenFor(1, { role: "service_role" });

describe("a table that is granted only to a server's role", () => {
  test("is read and written by that role, bypassing policies, with its related rows", async () => {
    const query = `{
      ledgers { edges { node { id total entries { id } } } }
      entries { edges { node { id accountId account { name } ledger { total } } } }
    }`;
    const { data, errors } = await graphql.ask(query, { token });
    expect(errors).toBeUndefined();
    expect(data).toEqual({
      ledgers: {
        edges: [
          { node: { id: "1", total: "5", entries: [{ id: "1" }] } },
          { node: { id: "2", total: "6", entries: [] } },
        ],
      },
      entries: { edges: [{ node: { id: "1", accountId: "1", account: { name: "one" }, ledger: { total: "5" } } }] },
    });
    const write =
      "mutation { createEntry(input: {id: 2, accountId: 1}) { id } updateLedger(id: 2, input: {total: 7}) { total } }";
    expect((await graphql.ask(write, { token })).data).toEqual({
      createEntry: { id: "2" },
      updateLedger: { total: "7" },
    });
  });

  test("is hidden from other roles", async () => {
    const fieldsOf = async (given: object) => {
      const { data } = await graphql.ask("{ __schema { types { name } queryType { fields { name } } } }", given);
      return [data.__schema.queryType.fields, data.__schema.types].map((named: { name: string }[]) =>
        named.map(({ name }) => name),
      );
    };
    const [fields, types] = await fieldsOf({});
    expect(fields).toEqual(["account", "accounts", "accountSearchResults"]);
    expect(types).not.toContain("Ledger");
    expect((await graphql.ask("{ ledgers { totalCount } }")).errors[0].extensions.code).toBe(
      "GRAPHQL_VALIDATION_FAILED",
    );
  });

  test("takes no name from other tables, and no column from roles that may read only that", async () => {
    const { data } = await graphql.ask("{ accounts { edges { node { id name ledger } } } }");
    expect(data.accounts.edges).toEqual([{ node: { id: "1", name: "one", ledger: "1" } }]);
    expect((await graphql.ask("{ accountRecords { totalCount } }", { token })).data).toEqual({
      accountRecords: { totalCount: 0 },
    });
  });

  test("adds no column of other tables", async () => {
    const { data } = await graphql.ask('{ __type(name: "Account") { fields { name } } }', { token });
    const names = data.__type.fields.map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual(["entries", "id", "ledger", "name"]);
  });
});
