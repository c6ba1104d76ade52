import { describe, expect, test } from "vitest";
import { admin, alice, anonymous, attempt, type Caller, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();

const INSERT = "insert into public.users (name, email) values ('D', 'd@example.org')";
const UPDATE = "update public.users set name = 'B' where id = 2";
const DELETE = "delete from public.users where id = 2";

describe("the policies for anonymous callers", () => {
  test.each<[NonNullable<Caller["interface"]>, NonNullable<Caller["usersAccess"]>, unknown[]]>([
    ["resource", "open", [1, 1, 1]],
    ["resource", "owner", [1, 0, 0]],
    ["graphql", "open", [1, 0, 0]],
    ["graphql", "owner", [1, 0, 0]],
    ["table", "open", ["42501", 0, 0]],
    ["table", "owner", ["42501", 0, 0]],
    ["realtime", "open", ["42501", 0, 0]],
  ])(
    "on %s with users_access %s let an anonymous caller insert, update, delete: %j",
    async (door, usersAccess, outcome) => {
      for (const anonymousClient of [anonymous, alice]) {
        const caller = { ...anonymousClient, interface: door, usersAccess };
        const tried = [];
        for (const statement of [INSERT, UPDATE, DELETE])
          tried.push(await attempt(content.requests, caller, statement));
        expect(tried).toEqual(outcome);
      }
      // The row does exist, so the zeros above mean something.
      expect(await attempt(content.requests, service, UPDATE)).toBe(1);
    },
  );

  test("allow nothing to a request without settings", async () => {
    const { requests } = content;
    await requests.query("begin");
    await requests.query("set local role anon; reset request.interface; reset app.users_access");
    await expect(requests.query(INSERT)).rejects.toMatchObject({ code: "42501" });
    await requests.query("rollback");
  });

  test("protect read-only columns for all roles", async () => {
    const open: Caller = { role: "anon", interface: "resource" };
    expect(await attempt(content.requests, open, "update public.users set id = 9 where id = 2")).toBe("42501");
    expect(await attempt(content.requests, open, "update public.users set created_at = now() where id = 2")).toBe(
      "42501",
    );
  });
});

describe("a user", () => {
  test.each([
    ["a name of blanks", "(' ', 'd@example.org', null, null)", "users_name_present"],
    ["a name of tabs", "(e'\\t', 'd@example.org', null, null)", "users_name_present"],
    ["a name of no-break spaces", "(u&'\\00a0', 'd@example.org', null, null)", "users_name_present"],
    ["a name that nobody sees", "(u&'\\200b\\feff', 'd@example.org', null, null)", "users_name_present"],
    [
      "a name of joiners and marks of direction",
      "(u&'\\034f\\061c', 'd@example.org', null, null)",
      "users_name_present",
    ],
    ["a name of fillers", "(u&'\\115f\\1160\\3164\\ffa0', 'd@example.org', null, null)", "users_name_present"],
    [
      "a name of variants of nothing",
      "(u&'\\180b\\180c\\180d\\180f', 'd@example.org', null, null)",
      "users_name_present",
    ],
    ["a name of 201 characters", "(repeat('n', 201), 'd@example.org', null, null)", "users_name_max_length"],
    ["no e-mail address", "('D', 'nobody', null, null)", "users_email_format"],
    ["an e-mail address with a blank", "('D', 'd @example.org', null, null)", "users_email_format"],
    ["an e-mail address of a host without a dot", "('D', 'd@example', null, null)", "users_email_format"],
    ["an age below 0", "('D', 'd@example.org', -1, null)", "users_age_range"],
    ["an age above 150", "('D', 'd@example.org', 151, null)", "users_age_range"],
    ["a picture that is a script", "('D', 'd@example.org', null, 'javascript:alert(1)')", "users_avatar_format"],
  ])("with %s is refused", async (_, values, constraint) => {
    const statement = `insert into public.users (name, email, age, avatar) values ${values}`;
    await expect(content.as(admin, statement)).rejects.toMatchObject({ code: "23514", constraint });
  });

  test.each([
    "<victim@e.example>",
    "Victim <victim@e.example>",
    "a(x)@b.example",
    "a@b.example(x)",
    "a,b@c.example",
    "a;b@c.example",
    "a:b@c.example;",
    '"a b"@c.example',
    "a@[127.0.0.1]",
    "a@127.0.0.1",
    "a\\@b.example",
    ".a@b.example",
    "a.@b.example",
    "a..b@c.example",
    "a@b..example",
    "a@.b.example",
    "a@b.example.",
    "a@-b.example",
    "a@b-.example",
    "a@b.example-",
    "a@b_c.example",
    `${"a".repeat(65)}@b.example`,
    `a@${"b".repeat(64)}.example`,
    `${"a".repeat(60)}@${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(60)}.example.org`,
    "a\u202e@b.example",
    "\u202ea@b.example",
    "a\u200b@b.example",
    "a@b.ex\u200bample",
    "\u0430@b.example",
    "a@b\u3002example",
    "\u212aim@b.example",
    "a@b.example\n",
    "a@b.example\r\nBcc: c@d.example",
    "a@b@c.example",
    "",
  ])("cannot have the e-mail address %j", async (email) => {
    const statement = "insert into public.users (name, email) values ('D', $1)";
    await expect(content.as(admin, statement, [email])).rejects.toMatchObject({
      code: "23514",
      constraint: "users_email_format",
    });
  });

  test.each([
    "d@example.org",
    "D.E+f_g-h@Sub-Domain.Example.ORG",
    "o'neil!#$%&*/=?^`{|}~@example.org",
    "1@2.example",
    "a@xn--mnchen-3ya.example",
    `${"a".repeat(64)}@${"b".repeat(63)}.example`,
  ])("may have the e-mail address %j", async (email) => {
    const statement = "insert into public.users (name, email) values ('D', $1) returning email";
    expect(await content.as(admin, statement, [email])).toEqual([{ email }]);
  });

  test("may have a name of 200 characters of any size", async () => {
    const statement =
      "insert into public.users (name, email) values (repeat('🐌', 200), 'd@example.org') returning length(name)";
    expect(await content.as(admin, statement)).toEqual([{ length: 200 }]);
  });

  test.each([
    ["as written", "alice@example.org", "users_email_key"],
    ["in another case", "ALICE@example.org", "users_email_any_case_key"],
  ])("cannot use a taken address, %s", async (_, email, constraint) => {
    const statement = "insert into public.users (name, email) values ('D', $1)";
    await expect(content.as(admin, statement, [email])).rejects.toMatchObject({ code: "23505", constraint });
  });

  test("can be upserted by e-mail address", async () => {
    const [row] = await content.as(
      service,
      "insert into public.users (name, email) values ('Al', 'alice@example.org') on conflict (email) do update set name = excluded.name returning id, name",
    );
    expect(row).toEqual({ id: "1", name: "Al" });
  });
});

describe("create_user", () => {
  const caller: Caller = { role: "anon", interface: "graphql" };

  test("adds a user for any caller of GraphQL", async () => {
    const [user] = await content.as(caller, "select * from public.create_user('D', 'd@example.org', 30)");
    expect(user).toMatchObject({ name: "D", email: "d@example.org", age: 30, avatar: null });
    expect(user?.created_at).toEqual(user?.updated_at);
  });

  test("does not bypass the policies of the table", async () => {
    const statement = "select public.create_user('D', 'd@example.org')";
    await expect(content.as({ ...caller, interface: "table" }, statement)).rejects.toMatchObject({ code: "42501" });
    expect(await content.as(admin, statement)).toHaveLength(1);
  });

  test("refuses an address that is registered", async () => {
    const statement = "select public.create_user('D', 'Alice@Example.org')";
    await expect(content.as(caller, statement)).rejects.toMatchObject({ code: "TAKEN", detail: "email" });
  });

  test("refuses a malformed address by the table's constraint", async () => {
    const statement = "select public.create_user('D', 'nobody')";
    await expect(content.as(caller, statement)).rejects.toMatchObject({
      code: "23514",
      constraint: "users_email_format",
    });
  });
});

describe("me", () => {
  test("is the signed-in user", async () => {
    expect(await content.as(alice, "select name from public.me()")).toEqual([{ name: "Alice" }]);
  });

  test.each([
    ["without a token", anonymous],
    ["with the token of a user who is gone", { role: "authenticated", sub: "99" } as const],
  ])("is an error %s", async (_, caller) => {
    await expect(content.as(caller, "select * from public.me()")).rejects.toMatchObject({ code: "LOGIN" });
  });
});
