import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "graphql-ws";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { useFixture, useFolder } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { operationOutcomes } from "../compile/oracle.ts";

const TABLES = `
  insert into public.users (name, email) values ('Ann', 'ann@example.org'), ('Bob', 'bob@example.org');
  create table public.accounts (
    id int primary key, owner text not null default current_user, balance int not null check (balance >= 0), txid bigint not null default txid_current(),
    ratio float8, parent_id int references public.accounts deferrable initially deferred
  );
  create index on public.accounts (parent_id);
  comment on constraint accounts_balance_check on public.accounts is 'The balance must not be negative.';
  comment on constraint accounts_parent_id_fkey on public.accounts is 'There is no such parent.';
  create function public.transfer(source int, target int, amount int) returns public.accounts language sql volatile as $$
    update public.accounts set balance = balance - amount where id = source;
    update public.accounts set balance = balance + amount where id = target returning *;
  $$;
  create function public.wait_for(seconds float8) returns boolean language sql volatile as 'select pg_sleep(seconds) is not null';
  create function public.current_claims() returns text language sql volatile as $$
    select current_user || ' ' || (current_setting('request.jwt.claims')::jsonb ->> 'sub') || ' ' || current_setting('request.interface') $$;
  create type public.outcome as (success boolean, balance int);
  create function public.withdraw(id int, amount int) returns public.outcome language plpgsql volatile as $$ declare rest int; begin
    update public.accounts a set balance = balance - amount where a.id = withdraw.id and balance >= amount returning balance into rest;
    return row(rest is not null, rest)::public.outcome;
  end $$;
  create table public.runs (id int primary key, success boolean not null);
  create function public.total_length(run public.runs) returns int language sql stable as 'select 1';
  create function public.end_session() returns boolean language sql volatile security definer as 'select pg_terminate_backend(pg_backend_pid())';
  create table public.lamps (id int primary key);
  create function public.blow_lamp() returns trigger language plpgsql security definer as $$ begin
    perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
  create constraint trigger blow after insert on public.lamps deferrable initially deferred for each row execute function public.blow_lamp();
  grant insert, select on public.lamps to authenticated;
  grant execute on all functions in schema public to authenticated;
  grant select, insert, update, delete on public.accounts, public.runs to authenticated;
`;
const PERSISTED =
  'mutation Both($name: String!) @transaction { a: createRun(input: { id: 1, success: true }) { id } b: createUser(input: { name: $name, email: "ann@example.org" }) { id } }';

const folder = useFolder("operations-");
beforeAll(() => writeFile(join(folder, "both.graphql"), PERSISTED));
const settings = {
  ADMIN_PORT: "0",
  GRAPHQL_PERSISTED_OPERATIONS: folder,
  GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "2",
  MAX_ANSWER_BYTES: "262144",
};
const compiling = useFixture(() => serveGraphQL({ settings, before: TABLES }));
beforeEach(() => compiling.sql("truncate public.accounts, public.runs"));

const token = tokenFor(1);
const accounts = () =>
  compiling.sql<{ id: number; balance: number }>("select id, balance from public.accounts order by id");
const articles = async () =>
  (await compiling.sql<{ title: string }>("select title from public.articles order by id")).map(({ title }) => title);
const codesOf = (errors: readonly { extensions: { code: string } }[]) =>
  errors.map(({ extensions }) => extensions.code);
const rolledBack = (message: string) => ({ message, extensions: { code: "TRANSACTION_ROLLED_BACK" } });

describe("a mutation with @transaction", () => {
  const ask = (query: string, variables = {}) => compiling.ask(query, { variables, token });

  test("commits its fields in one transaction, in order, each of which sees those before it", async () => {
    const { data, errors } = await ask(
      `mutation ($first: ID!) @transaction {
        a: createAccount(input: { id: $first, balance: 10 }) { id txid }
        __typename
        b: createAccount(input: { id: 2, balance: 0, parentId: 1 }) { id txid parent { balance } }
        skipped: createAccount(input: { id: 3, balance: 0 }) @skip(if: true) { id }
        ...rest @include(if: true)
      }
      fragment rest on Mutation { c: transfer(input: { source: 1, target: 2, amount: 4 }) { balance parent { balance } } }`,
      { first: 1 },
    );
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({
      __typename: "Mutation",
      a: { id: "1" },
      b: { id: "2", parent: { balance: 10 } },
      c: { balance: 4, parent: { balance: 6 } },
    });
    expect(data.a.txid).toBe(data.b.txid);
    expect(Object.keys(data)).toEqual(["a", "__typename", "b", "c"]);
    expect(await accounts()).toEqual([
      { id: 1, balance: 6 },
      { id: 2, balance: 4 },
    ]);
  });

  test("runs as the caller", async () => {
    const { data } = await ask("mutation @transaction { a: currentClaims b: currentClaims }");
    expect(data).toEqual({ a: "authenticated 1 graphql", b: "authenticated 1 graphql" });
  });

  test("changes nothing if one of its fields fails, and says which one", async () => {
    const { data, errors, status } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      bad: createAccount(input: { id: 2, balance: -1 }) { id }
      after: createAccount(input: { id: 3, balance: 0 }) { id }
    }`);
    expect({ data, status }).toEqual({ data: null, status: 200 });
    expect(errors).toEqual([
      {
        message: "The balance must not be negative.",
        path: ["bad"],
        locations: [{ line: 3, column: 7 }],
        extensions: {
          code: "VALIDATION_ERROR",
          field: "balance",
          details: expect.stringMatching(/^Failing row contains \(2, authenticated, -1, /),
        },
      },
      rolledBack('Nothing was changed, because the field "bad" failed.'),
    ]);
    expect(await accounts()).toEqual([]);
  });

  test("changes nothing if the function of a field fails", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      transfer(input: { source: 1, target: 1, amount: 11 }) { id }
    }`);
    expect(data).toBeNull();
    expect(errors).toMatchObject([
      { path: ["transfer"] },
      rolledBack('Nothing was changed, because the field "transfer" failed.'),
    ]);
    expect(await accounts()).toEqual([]);
  });

  test("changes nothing if a row to update does not exist", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      updateAccount(id: 7, input: { balance: 10 }) { id }
      createRun(input: { id: 1, success: true }) { id }
    }`);
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["updateAccount"] }, {}]);
    expect(codesOf(errors)).toEqual(["RESOURCE_NOT_FOUND", "TRANSACTION_ROLLED_BACK"]);
    expect(await accounts()).toEqual([]);
    expect(await compiling.sql("select from public.runs")).toEqual([]);
  });

  test("changes nothing if a value of its result cannot be shown", async () => {
    await compiling.sql("insert into public.accounts (id, balance, ratio) values (5, 1, 'NaN')");
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      updateAccount(id: 5, input: { balance: 2 }) { id ratio }
      createRun(input: { id: 1, success: true }) { id }
    }`);
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["updateAccount", "ratio"] }, {}]);
    expect(await accounts()).toEqual([{ id: 5, balance: 1 }]);
    expect(await compiling.sql("select from public.runs")).toEqual([]);
  });

  test("says that the commit failed if a deferred constraint is violated", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      a: createAccount(input: { id: 1, balance: 10, parentId: 9 }) { id }
      b: createAccount(input: { id: 2, balance: 10 }) { id }
    }`);
    expect(data).toBeNull();
    expect(errors).toEqual([
      expect.objectContaining({ message: "There is no such parent." }),
      rolledBack("Nothing was changed, because the transaction could not be committed."),
    ]);
    expect(errors[0].path).toBeUndefined();
    expect(await accounts()).toEqual([]);
  });

  test("checks deferred constraints for all its fields together", async () => {
    const { errors } = await ask(`mutation @transaction {
      a: createAccount(input: { id: 1, balance: 10, parentId: 2 }) { id }
      b: createAccount(input: { id: 2, balance: 10 }) { id }
    }`);
    expect(errors).toBeUndefined();
    expect(await accounts()).toHaveLength(2);
  });

  test("changes nothing if a result says that its mutation was not successful", async () => {
    const before = await articles();
    const mutation = (title: string) => `mutation @transaction {
      good: createArticle(input: { title: "A good title", content: "Text" }) { success }
      bad: createArticle(input: { title: "${title}", content: "Text" }) { article { id } }
      run: createRun(input: { id: 1, success: false }) { id }
    }`;
    const { data, errors } = await ask(mutation("No"));
    expect(data).toBeNull();
    expect(errors).toMatchObject([
      {
        message: "The article was not created: see errors.",
        path: ["bad"],
        extensions: { code: "UNSUCCESSFUL_RESULT", errors: [{ field: "title" }] },
      },
      rolledBack('Nothing was changed, because the field "bad" failed.'),
    ]);
    expect(await articles()).toEqual(before);
    expect((await ask(mutation("Another good title"))).data).toMatchObject({
      good: { success: true },
      run: { id: "1" },
    });
    expect(await articles()).toEqual([...before, "A good title", "Another good title"]);
  });

  test("treats a result with success as one only if it is no row", async () => {
    await compiling.sql("insert into public.accounts (id, balance) values (1, 5)");
    const withdraw = (amount: number) =>
      ask(
        `mutation @transaction { a: withdraw(id: 1, input: { amount: 1 }) { balance } b: withdraw(id: 1, input: { amount: ${amount} }) { balance } }`,
      );
    expect((await withdraw(2)).data).toEqual({ a: { balance: 4 }, b: { balance: 2 } });
    const { errors } = await withdraw(3);
    expect(errors).toMatchObject([{ message: "The mutation was not successful.", path: ["b"] }, {}]);
    expect(await accounts()).toEqual([{ id: 1, balance: 2 }]);
  });

  test("has the time of one statement for all its fields", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      a: waitFor(input: { seconds: 1.5 })
      b: waitFor(input: { seconds: 1.5 })
    }`);
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["b"], extensions: { code: "TIMEOUT" } }, {}]);
    expect(await accounts()).toEqual([]);
  });

  test("changes nothing if its response is too large", async () => {
    await compiling.sql("insert into public.accounts (id, balance) select n, 1 from generate_series(1, 900) as n");
    const update = (id: number, balance: number) =>
      ask(`mutation @transaction {
        createAccount(input: { id: ${id}, balance: 10, parentId: 1 }) { id }
        updateAccount(id: 1, input: { balance: ${balance} }) { id accounts(limit: 1000) { a: owner b: owner c: owner } }
      }`);
    const { data } = await update(1000, 2);
    expect(data.updateAccount.accounts).toHaveLength(1);
    await compiling.sql("update public.accounts set parent_id = 1, owner = repeat('x', 1000)");
    const large = await update(1001, 3);
    expect(large.data).toBeNull();
    expect(large.errors[0]).toMatchObject({
      path: expect.arrayContaining(["updateAccount"]),
      extensions: { code: "ANSWER_TOO_LARGE" },
    });
    expect(large.errors[0].message).not.toContain("The change was made");
    expect(await compiling.sql("select from public.accounts where id = 1001 or balance = 3")).toEqual([]);
  });

  test("changes nothing if its connection is lost before the commit", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      endSession
      createRun(input: { id: 1, success: true }) { id }
    }`);
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ path: ["endSession"] }, {}]);
    expect(codesOf(errors)).toEqual(["SERVICE_UNAVAILABLE", "TRANSACTION_ROLLED_BACK"]);
    expect(await accounts()).toEqual([]);
    expect(await compiling.sql("select from public.runs")).toEqual([]);
  });

  test("does not say that nothing was changed if its connection is lost during the commit", async () => {
    const { data, errors } = await ask(`mutation @transaction {
      createAccount(input: { id: 1, balance: 10 }) { id }
      createLamp(input: { id: 1 }) { id }
    }`);
    expect(data).toBeNull();
    expect(codesOf(errors)).toEqual(["SERVICE_UNAVAILABLE"]);
    expect(errors[0].message).toContain("may have been made");
  });

  test("may have one field", async () => {
    const one = (id: number, balance: number) =>
      ask(`mutation @transaction { createAccount(input: { id: ${id}, balance: ${balance} }) { id } }`);
    expect((await one(1, 1)).data).toEqual({ createAccount: { id: "1" } });
    expect(codesOf((await one(2, -1)).errors)).toEqual(["VALIDATION_ERROR", "TRANSACTION_ROLLED_BACK"]);
    expect(await accounts()).toHaveLength(1);
  });

  test("may be a registered operation", async () => {
    const response = await fetch(compiling.url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: JSON.stringify({ documentId: "both", variables: { name: "Other" } }),
    });
    const { errors } = (await response.json()) as { errors: { extensions: { code: string } }[] };
    expect(codesOf(errors)).toEqual(["RESOURCE_CONFLICT", "TRANSACTION_ROLLED_BACK"]);
    expect(await compiling.sql("select from public.runs")).toEqual([]);
  });

  test("may be sent over a WebSocket", async () => {
    const client = createClient({
      url: compiling.socketUrl,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
      connectionParams: { Authorization: `Bearer ${token}` },
    });
    const results: { data?: unknown; errors?: readonly object[] }[] = [];
    for (const balance of [1, -1]) {
      const query = `mutation @transaction { a: createRun(input: { id: ${balance + 2}, success: true }) { id } b: createAccount(input: { id: 1, balance: ${balance} }) { id } }`;
      for await (const result of client.iterate({ query })) results.push(result as (typeof results)[0]);
    }
    await client.dispose();
    expect(results).toMatchObject([
      { data: { a: { id: "3" }, b: { id: "1" } } },
      { data: null, errors: [{ path: ["b"] }, { extensions: { code: "TRANSACTION_ROLLED_BACK" } }] },
    ]);
    expect(await compiling.sql("select id from public.runs")).toEqual([{ id: 3 }]);
  });
});

describe("@transaction", () => {
  test("leaves a mutation compiled", async () => {
    const before = await operationOutcomes(compiling.service);
    await compiling.ask(
      "mutation @transaction { a: createRun(input: { id: 1, success: true }) { id } b: createRun(input: { id: 2, success: true }) { id } }",
      { token },
    );
    const after = await operationOutcomes(compiling.service);
    expect((after.compiled ?? 0) - (before.compiled ?? 0)).toBe(1);
    expect({ ...after, compiled: 0 }).toEqual({ ...before, compiled: 0 });
  });

  test("is refused on queries and subscriptions, and twice", async () => {
    const codes = async (query: string) => {
      const { data, errors } = await compiling.ask(query, { token });
      expect(data).toBeUndefined();
      return errors.map(({ message, extensions }: { message: string; extensions: { code: string } }) => [
        message,
        extensions.code,
      ]);
    };
    const invalid = "GRAPHQL_VALIDATION_FAILED";
    expect(await codes("query @transaction { users { id } }")).toEqual([
      ['Directive "@transaction" may not be used on QUERY.', invalid],
    ]);
    expect(await codes("subscription @transaction { onArticleCreated { id } }")).toEqual([
      ['Directive "@transaction" may not be used on SUBSCRIPTION.', invalid],
    ]);
    expect(await codes("mutation @transaction @transaction { currentClaims }")).toEqual([
      ['The directive "@transaction" can only be used once at this location.', invalid],
    ]);
  });

  test("is in the schema of each role", async () => {
    for (const caller of [undefined, token, tokenFor(1, { role: "service_role" })]) {
      const query = "{ __schema { directives { name locations } } }";
      const { data } = await compiling.ask(query, { ...(caller && { token: caller }) });
      expect(data.__schema.directives).toContainEqual({ name: "transaction", locations: ["MUTATION"] });
    }
  });

  test("leaves mutations without it as they are: each field is a transaction", async () => {
    const { data } = await compiling.ask(
      `mutation { a: createRun(input: { id: 1, success: true }) { id } b: createArticle(input: { title: "No", content: "Text" }) { success } }`,
      { token },
    );
    expect(data).toEqual({ a: { id: "1" }, b: { success: false } });
    expect(await compiling.sql("select id from public.runs")).toEqual([{ id: 1 }]);
  });
});
