import { beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { operationOutcomes } from "../compile/oracle.ts";

const TABLES = `
  create schema hidden;
  grant usage on schema hidden to public;
  create function hidden.caller() returns text language sql stable
    as $$ select nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub' $$;
  create type public.state as enum ('open', 'paid');
  create table public.customers (
    id uuid primary key default gen_random_uuid(), name text not null unique, since date, secret text, address jsonb
  );
  create table public.orders (
    id bigint generated always as identity primary key, customer_id uuid references public.customers, code text not null unique,
    owner text not null default hidden.caller(), state public.state not null default 'open'
  );
  create table public.lines (
    order_id bigint not null references public.orders, place int not null, unit_price numeric(8, 2) not null check (unit_price >= 0),
    words text[], large int8, primary key (order_id, place)
  );
  create table public.tags (id int generated always as identity primary key, name text not null);
  create table public.order_tags (
    order_id bigint references public.orders, tag_id int references public.tags, weight int not null default 7, primary key (order_id, tag_id)
  );
  create table public.people (id int generated always as identity primary key, name text not null, boss_id int references public.people);
  create table public.slots (code text not null unique, person_id int not null references public.people);
  comment on table public.slots is '@nestedInsert forward';
  create function hidden.next_number() returns int language sql as 'select 1';
  revoke execute on function hidden.next_number() from public;
  create table public.badges (number int primary key default hidden.next_number(), person_id int not null references public.people);
  comment on table public.badges is '@nestedInsert forward';
  create function hidden.before_line() returns trigger language plpgsql as $$ begin
    if new.place = 13 then return null; end if;
    if new.place = 14 then raise exception 'No such place' using errcode = 'P0001'; end if;
    return new;
  end $$;
  create trigger before_line before insert on public.lines for each row execute function hidden.before_line();
  create function hidden.after_line() returns trigger language plpgsql security definer as $$ begin
    update public.orders set state = 'paid' where id = new.order_id;
    return null;
  end $$;
  create trigger after_line after insert on public.lines for each row when (new.place = 20) execute function hidden.after_line();
  alter table public.orders enable row level security;
  create policy own on public.orders using (owner = hidden.caller()) with check (owner = hidden.caller());
  alter table public.lines enable row level security;
  create policy of_order on public.lines using (exists (select from public.orders where orders.id = order_id));
  comment on constraint orders_customer_id_fkey on public.orders is '@nestedInsert';
  comment on constraint lines_order_id_fkey on public.lines is '@nestedInsert backward';
  comment on table public.order_tags is '@nestedInsert';
  comment on constraint people_boss_id_fkey on public.people is '@nestedInsert';
  grant usage on schema public to authenticated, clerk;
  grant select, insert on public.orders, public.lines, public.tags, public.order_tags, public.people, public.slots, public.badges to authenticated;
  grant select (id, name, since, address), insert (name, since, address) on public.customers to authenticated;
  grant select, insert on public.orders, public.tags to clerk;
  grant select on public.lines, public.customers to clerk;
`;
const ROLE = `do $$ begin create role clerk nologin; exception when duplicate_object or unique_violation then null; end $$; grant clerk to authenticator;`;

const user = { token: tokenFor("ann") };
const clerk = { token: tokenFor("ann", { role: "clerk" }) };

describe("a creation with related rows", () => {
  const served = useFixture(() =>
    serveGraphQL({
      template: "empty",
      before: ROLE + TABLES,
      settings: { ADMIN_PORT: "0" },
    }),
  );
  beforeEach(() =>
    served.sql(
      "truncate public.customers, public.orders, public.lines, public.tags, public.order_tags, public.people, public.slots, public.badges",
    ),
  );

  const countRows = async () => {
    const [row] = await served.sql<{ rows: string }>(
      "select (select count(*) from public.orders) + (select count(*) from public.lines) + (select count(*) from public.customers) as rows",
    );
    return Number(row!.rows);
  };

  test("inserts rows in both directions of foreign keys, and returns them", async () => {
    const answer = await served.ask(
      `mutation ($input: CreateOrderInput!) {
        createOrder(input: $input) {
          code state owner customer { name since address }
          lines { place unitPrice words large }
          orderTags { weight tag { name } }
        }
      }`,
      {
        ...user,
        variables: {
          input: {
            code: "a",
            state: "paid",
            customer: { name: "Ada", since: "2026-01-02", address: { city: "Bern", zip: 3000.5 } },
            lines: [
              { place: 1, unitPrice: "1.50", words: ["a", 'b"c'], large: "9007199254740993" },
              { place: 2, unitPrice: 2 },
            ],
            orderTags: [{ tag: { name: "red" } }, { weight: 1, tag: { name: "blue" } }],
          },
        },
      },
    );
    expect(answer.errors).toBeUndefined();
    expect(answer.data.createOrder).toEqual({
      code: "a",
      state: "paid",
      owner: "ann",
      customer: { name: "Ada", since: "2026-01-02", address: { city: "Bern", zip: 3000.5 } },
      lines: [
        { place: 1, unitPrice: "1.50", words: ["a", 'b"c'], large: "9007199254740993" },
        { place: 2, unitPrice: "2.00", words: null, large: null },
      ],
      orderTags: [
        { weight: 7, tag: { name: "red" } },
        { weight: 1, tag: { name: "blue" } },
      ],
    });
  });

  test("takes literals and variables at any depth", async () => {
    const { data, errors } = await served.ask(
      `mutation ($name: String!, $people: [PersonPeopleNestedInput!]) {
        createPerson(input: { name: $name, boss: { name: "boss", boss: { name: "chief" } }, people: $people }) {
          name boss { name boss { name } } people { name people { name } }
        }
      }`,
      {
        ...user,
        variables: { name: "n", people: [{ name: "one", people: [{ name: "under one" }] }, { name: "two" }] },
      },
    );
    expect(errors).toBeUndefined();
    expect(data.createPerson).toEqual({
      name: "n",
      boss: { name: "boss", boss: { name: "chief" } },
      people: [
        { name: "one", people: [{ name: "under one" }] },
        { name: "two", people: [] },
      ],
    });
  });

  test("accepts nulls and empty lists as no rows, and creates a row alone", async () => {
    const create = (input: string) =>
      served.ask(`mutation { createOrder(input: { ${input} }) { code customerId lines { place } } }`, user);
    for (const input of ['code: "a"', 'code: "b", lines: []', 'code: "c", customer: null, lines: null']) {
      const { data, errors } = await create(input);
      expect(errors, input).toBeUndefined();
      expect(data.createOrder).toMatchObject({ customerId: null, lines: [] });
    }
  });

  test("changes nothing when a row is refused, and says where it is in the input", async () => {
    const create = (lines: string) =>
      served.ask(
        `mutation { createOrder(input: { code: "a", customer: { name: "Ada" }, lines: [${lines}] }) { code } }`,
        user,
      );
    const refused = [
      ["{ place: 1, unitPrice: 1 }, { place: 2, unitPrice: -1 }", "VALIDATION_ERROR", ["lines", "*", "unitPrice"]],
      ["{ place: 1, unitPrice: 1 }, { place: 1, unitPrice: 1 }", "RESOURCE_CONFLICT", ["lines", "*"]],
      ["{ place: 14, unitPrice: 1 }", "VALIDATION_ERROR", ["lines", 0]],
      ["{ place: 1, unitPrice: 1 }, { place: 13, unitPrice: 1 }", "RESOURCE_CONFLICT", ["lines", "*"]],
      ["{ place: 1, unitPrice: 12345678 }", "VALIDATION_ERROR", ["lines", 0]],
    ] as const;
    for (const [lines, code, path] of refused) {
      const { data, errors } = await create(lines);
      expect(data, lines).toBeNull();
      expect(errors[0].extensions.code, lines).toBe(code);
      expect(errors[0].path).toEqual(["createOrder"]);
      expect(errors[0].extensions.inputPath, lines).toEqual(path);
      expect(await countRows()).toBe(0);
    }
  });

  test("keeps all digits of numbers, and returns the row as triggers have left it", async () => {
    const { data, errors } = await served.ask(
      'mutation { createOrder(input: { code: "a", lines: [{ place: 20, unitPrice: 1.10, large: 9007199254740993 }] }) { state lines { unitPrice large } } }',
      user,
    );
    expect(errors).toBeUndefined();
    expect(data.createOrder).toEqual({ state: "paid", lines: [{ unitPrice: "1.10", large: "9007199254740993" }] });
  });

  test("returns a row of a table that has a unique column and no primary key", async () => {
    const { data, errors } = await served.ask(
      'mutation { createSlot(input: { code: "a/1", person: { name: "Ada" } }) { code person { name } } }',
      user,
    );
    expect(errors).toBeUndefined();
    expect(data.createSlot).toEqual({ code: "a/1", person: { name: "Ada" } });
  });

  test("refuses a malformed id", async () => {
    const { errors } = await served.ask(
      'mutation { createOrder(input: { code: "a", customerId: "nonsense", lines: [{ place: 1, unitPrice: 1 }] }) { code } }',
      user,
    );
    expect(errors[0].extensions.code).toBe("VALIDATION_ERROR");
    expect(await countRows()).toBe(0);
  });

  test("refuses an input of too many levels", async () => {
    const people = (levels: number): string => `{ name: "n", boss: ${levels === 1 ? "null" : people(levels - 1)} }`;
    const create = (levels: number) => served.ask(`mutation { createPerson(input: ${people(levels)}) { name } }`, user);
    expect((await create(8)).errors).toBeUndefined();
    expect((await create(9)).errors[0].extensions.code).toBe("VALIDATION_ERROR");
  });

  test("refuses rows that policies do not permit", async () => {
    const { errors } = await served.ask(
      'mutation { createOrder(input: { code: "a", owner: "bob", lines: [{ place: 1, unitPrice: 1 }] }) { code } }',
      user,
    );
    expect(errors[0].extensions.code).toBe("PERMISSION_DENIED");
    expect(await countRows()).toBe(0);
  });

  test("needs the privileges of a default only where a row has no value for the column", async () => {
    const create = (input: string) =>
      served.ask(`mutation { createBadge(input: { ${input} person: { name: "Ada" } }) { number } }`, user);
    expect(await create("number: 7,")).toMatchObject({ data: { createBadge: { number: "7" } } });
    expect((await create("")).errors[0].extensions.code).toBe("PERMISSION_DENIED");
  });

  test("refuses a foreign key that is not that of the related row", async () => {
    const customerId = "00000000-0000-4000-8000-000000000001";
    const { errors } = await served.ask(
      `mutation { createOrder(input: { code: "a", customerId: "${customerId}", customer: { name: "Ada" } }) { code } }`,
      user,
    );
    expect(errors[0].extensions).toMatchObject({ code: "VALIDATION_ERROR", inputPath: ["customerId"] });
    expect(await countRows()).toBe(0);
  });

  test("is offered to a role for tables and columns into which it may insert", async () => {
    const fieldsFor = async (type: string, token?: string) => {
      const { data } = await served.ask(
        `{ __type(name: "${type}") { inputFields { name } } }`,
        token === undefined ? {} : { token },
      );
      return data.__type?.inputFields.map(({ name }: { name: string }) => name) ?? null;
    };
    expect(await fieldsFor("CreateOrderInput", user.token)).toEqual([
      "customerId",
      "code",
      "owner",
      "state",
      "customer",
      "lines",
      "orderTags",
    ]);
    expect(await fieldsFor("OrderCustomerNestedInput", user.token)).toEqual(["name", "since", "address"]);
    expect(await fieldsFor("CreateOrderInput", clerk.token)).toEqual(["customerId", "code", "owner", "state"]);
    expect(await fieldsFor("OrderLinesNestedInput", clerk.token)).toBeNull();
    const { data, errors } = await served.ask('mutation { createOrder(input: { code: "a" }) { code } }', clerk);
    expect(errors).toBeUndefined();
    expect(data).toEqual({ createOrder: { code: "a" } });
  });

  test("runs several times in an operation, each in a transaction of its own", async () => {
    const create = (code: string, price: number) =>
      `${code}: createOrder(input: { code: "${code}", lines: [{ place: 1, unitPrice: ${price} }] }) { code lines { place } }`;
    const { data, errors } = await served.ask(`mutation { ${create("a", 1)} ${create("b", 1)} }`, user);
    expect(errors).toBeUndefined();
    expect(data).toEqual({ a: { code: "a", lines: [{ place: 1 }] }, b: { code: "b", lines: [{ place: 1 }] } });
    await served.ask(`mutation { ${create("c", 1)} ${create("d", -1)} }`, user);
    expect(await countRows()).toBe(6);
  });

  test("is done or undone with the other fields of a transaction", async () => {
    const create = (code: string, price: number) =>
      `${code}: createOrder(input: { code: "${code}", lines: [{ place: 1, unitPrice: ${price} }] }) { code lines { place } }`;
    const failed = await served.ask(`mutation @transaction { ${create("a", 1)} ${create("b", -1)} }`, user);
    expect(failed.data).toBeNull();
    expect(failed.errors[0]).toMatchObject({ path: ["b"], extensions: { inputPath: ["lines", 0, "unitPrice"] } });
    expect(await countRows()).toBe(0);
    const done = await served.ask(`mutation @transaction { ${create("a", 1)} ${create("b", 1)} }`, user);
    expect(done.errors).toBeUndefined();
    expect(await countRows()).toBe(4);
  });

  test("is one compiled operation", async () => {
    const { compiled: before = 0 } = await operationOutcomes(served.service);
    const query = "mutation ($input: CreateOrderInput!) { createOrder(input: $input) { lines { place } } }";
    for (const count of [0, 1, 2, 3]) {
      const lines = Array.from({ length: count }, (_, place) => ({ place, unitPrice: 1 }));
      const { errors } = await served.ask(query, { ...user, variables: { input: { code: String(count), lines } } });
      expect(errors).toBeUndefined();
    }
    const { compiled = 0, mutation = 0 } = await operationOutcomes(served.service);
    expect(compiled - before).toBe(4);
    expect(mutation).toBe(0);
  });
});
