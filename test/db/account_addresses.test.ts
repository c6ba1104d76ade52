import { beforeAll, describe, expect, test } from "vitest";
import { admin, alice, anonymous, attempt, bob, type Caller, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();
beforeAll(() => content.owner.query("insert into auth.users (user_id, username) values (1, 'alice')"));

const OPEN = { interface: "resource", usersAccess: "open" } as const;
const move = (id: number) => `update public.users set email = 'moved@example.org' where id = ${id}`;
const tried = (caller: Caller, statement: string) => attempt(content.requests, { ...caller, ...OPEN }, statement);

describe("if any caller may change users, the address of an account", () => {
  test.each<[string, Caller, number | string]>([
    ["nobody", anonymous, "LOGIN"],
    ["another user", bob, "NOPER"],
    ["the user", alice, 1],
    ["an administrator", admin, 1],
    ["another server of ours", service, 1],
  ])("may be changed by %s: %j", async (_who, caller, outcome) => {
    expect(await tried(caller, move(1))).toBe(outcome);
  });

  test("may be repeated but not changed by any caller, and other columns may be changed", async () => {
    const rest = "update public.users set name = 'A', age = 7, email = 'alice@example.org' where id = 1";
    expect(await tried(anonymous, rest)).toBe(1);
  });

  test("is protected because there is an account: that of a user without one may be changed", async () => {
    expect(await tried(anonymous, move(2))).toBe(1);
  });
});

test("the owner of the tables may change any address", async () => {
  const { rowCount } = await content.owner.query(move(1));
  expect(rowCount).toBe(1);
});

test("an account has the address of its user, and is verified while that is the address that was proved", async () => {
  const account = async () =>
    (
      await content.owner.query(
        "select email, username, email_confirmed_at is not null as confirmed from auth.users where user_id = 1",
      )
    ).rows[0];
  await content.owner.query("update public.users set email = 'alice@example.org' where id = 1");
  expect(await account()).toEqual({ email: "alice@example.org", username: "alice", confirmed: false });
  await content.owner.query("update auth.users set verified_email = 'alice@example.org' where user_id = 1");
  expect(await account()).toMatchObject({ confirmed: true });
  await content.owner.query(move(1));
  expect(await account()).toEqual({ email: "moved@example.org", username: "alice", confirmed: false });
  await content.owner.query("update auth.users set email_confirmed_at = now() where user_id = 1");
  const { rows } = await content.owner.query("select verified_email from auth.users where user_id = 1");
  expect(rows).toEqual([{ verified_email: "moved@example.org" }]);
});
