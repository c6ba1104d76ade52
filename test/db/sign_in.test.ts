import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";

const content = useContent();
const ROLES = ["authenticator", "anon", "authenticated", "admin", "service_role"];
const HELPERS_OF_POLICIES = ["accepts_sign_ups()", "is_admin()", "jwt()", "role()", "uid()", "users_are_open(text)"];

async function asRole(role: string, statement: string): Promise<void> {
  const { requests } = content;
  await requests.query("begin");
  try {
    if (role !== "authenticator") await requests.query(`set local role ${role}`);
    await requests.query(statement);
  } finally {
    await requests.query("rollback");
  }
}

describe.each(ROLES)("%s", (role) => {
  test("can call no function of the sign-in", async () => {
    const { rows } = await content.owner.query<{ name: string; call: string }>(`
      select substring(oid::regprocedure::text from 'auth.(.*)') as name,
        format('select %s(%s)', oid::regproc,
          (select string_agg('null::' || format_type(type, null), ', ') from unnest(proargtypes::oid[]) as type)) as call
      from pg_proc where pronamespace = 'auth'::regnamespace and prorettype <> 'trigger'::regtype`);
    const closed = rows.filter(({ name }) => !HELPERS_OF_POLICIES.includes(name));
    expect(closed.length).toBeGreaterThan(30);
    for (const { call } of closed) await expect(asRole(role, call), call).rejects.toMatchObject({ code: "42501" });
  });

  test("can read and change no table of the sign-in", async () => {
    const { rows } = await content.owner.query<{ name: string }>(
      "select oid::regclass as name from pg_class where relnamespace = 'auth'::regnamespace and relkind in ('r', 'v', 'm', 'p', 'S')",
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { name } of rows) {
      for (const statement of [`select from ${name}`, `delete from ${name}`, `insert into ${name} default values`]) {
        await expect(asRole(role, statement), statement).rejects.toMatchObject({
          code: expect.stringMatching(/42501|42809/),
        });
      }
    }
  });
});

describe("a user who changes the e-mail address", () => {
  async function usernameAfter(username: string, email: string, usersAccess = "open"): Promise<string> {
    const { owner } = content;
    await owner.query("begin");
    try {
      await owner.query("insert into auth.users (user_id, username) values (1, $1)", [username]);
      await owner.query(
        "select set_config('request.jwt.claims', '{\"sub\":\"1\"}', true), set_config('role', 'authenticated', true), set_config('app.users_access', $1, true)",
        [usersAccess],
      );
      expect((await owner.query("update public.users set email = $1 where id = 1", [email])).rowCount).toBe(1);
      await owner.query("reset role");
      return (await owner.query("select username from auth.users where user_id = 1")).rows[0].username;
    } finally {
      await owner.query("rollback");
    }
  }

  test("signs in with the new one, if the old one was the user name", async () => {
    expect(await usernameAfter("ALICE@example.org", "new@example.org")).toBe("new@example.org");
  });

  test("proves the new one first, unless everybody may change users", async () => {
    for (const usersAccess of ["owner", ""]) {
      await expect(usernameAfter("alice", "new@example.org", usersAccess)).rejects.toMatchObject({ code: "NOPER" });
    }
  });

  test("keeps a user name that is not the address", async () => {
    expect(await usernameAfter("alice", "new@example.org")).toBe("alice");
  });

  test("may have any address that a user may have", async () => {
    expect(await usernameAfter("alice@example.org", "o'neil+a@example.org")).toBe("o'neil+a@example.org");
  });
});

test("the claims of an administrator include the permissions of all signed-in users", async () => {
  const { owner } = content;
  await owner.query("begin");
  await owner.query(`
    insert into auth.permissions (name, description) values ('a:one', ''), ('b:two', ''), ('c:three', '');
    insert into auth.role_permissions (role, permission) values ('authenticated', 'b:two'), ('admin', 'a:one'), ('service_role', 'c:three');
    insert into auth.user_permissions (user_id, permission) values (2, 'b:two'), (2, 'c:three');
    insert into auth.user_roles (user_id, role) values (1, 'admin'), (3, 'service_role');
  `);
  const claimsOf = async (id: number) =>
    (await owner.query("select auth.claims_of($1) as claims", [id])).rows[0].claims;
  expect(await claimsOf(1)).toEqual({ sub: "1", name: "Alice", role: "admin", permissions: ["a:one", "b:two"] });
  expect(await claimsOf(2)).toEqual({
    sub: "2",
    name: "Bob",
    role: "authenticated",
    permissions: ["b:two", "c:three"],
  });
  // A role that is not assignable is nobody's, however it came there.
  expect(await claimsOf(3)).toMatchObject({ role: "authenticated", permissions: ["b:two"] });
  expect(await claimsOf(99)).toBeNull();
  await owner.query("rollback");
});

test("the log of an account is kept after its deletion", async () => {
  const { owner } = content;
  await owner.query("begin");
  await owner.query("insert into auth.users (user_id, username) values (1, 'alice')");
  await owner.query("delete from public.users where id = 1");
  const { rows } = await owner.query("select event, user_id from auth.audit_log");
  expect(rows).toEqual([{ event: "account.deleted", user_id: "1" }]);
  await owner.query("rollback");
});
