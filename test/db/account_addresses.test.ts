import { beforeAll, describe, expect, test } from "vitest";
import { admin, alice, anonymous, attempt, bob, type Caller, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();
beforeAll(() => content.owner.query("insert into auth.credentials (user_id, username) values (1, 'alice')"));

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
