import { expect, test } from "vitest";
import { makeMissingRoleWarning } from "../../../accounts/identity/caller-settings.ts";

test("a missing role is logged once for as long as it is missing", () => {
  const result: unknown[] = [];
  const warn = makeMissingRoleWarning({ warn: (about: object) => result.push(about) });
  const look = (anonRole: string, ...roles: string[]) => {
    result.length = 0;
    const known = new Map(roles.map((name) => [name, {}]));
    warn({ anonRole, loginRole: "authenticator", catalog: { roles: known as never } });
    return [...result];
  };
  expect(look("anon", "anon")).toEqual([]);
  expect(look("anon")).toEqual([{ role: "anon" }]);
  expect(look("anon", "other")).toEqual([]);
  expect(look("guest")).toEqual([{ role: "guest" }]);
  expect(look("guest", "guest")).toEqual([]);
  expect(look("guest")).toEqual([{ role: "guest" }]);
});
