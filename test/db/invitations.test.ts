import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
const HASH = "decode(repeat('ab', 32), 'hex')";
const BY_ALICE = "row (null, null, null, 1)::auth.client_info";
const invite = (role: string, by = BY_ALICE) =>
  `select auth.begin_invitation(${HASH}, 2, '${role}', 3600, '{"name": "Bob"}', ${by})`;
const ACCEPT = `select auth.accept_invitation(${HASH}, '$new', null)`;
const ROLE = "select role from auth.user_roles where user_id = 2";

const inAccounts = rolledBackAfter(
  content,
  `insert into auth.users (user_id, username, password_hash) values (1, 'alice', '$old'), (2, 'bob', null);
   insert into auth.user_roles (user_id, role) values (1, 'admin')`,
);

describe("an invitation in the database", () => {
  test("is of an administrator, with a role that users have", () =>
    inAccounts(async ({ rows, value }) => {
      expect(await value("select auth.may_invite(1)")).toBe(true);
      expect(await value("select auth.may_invite(2)")).toBe(false);
      expect(await value("select auth.may_invite(null)")).toBe(true);
      expect(await value(invite("admin"))).toBe("bob@example.org");
      expect(await rows(`select user_id, email, role from auth.find_invitation(${HASH})`)).toEqual([
        { user_id: "2", email: "bob@example.org", role: "admin" },
      ]);
      expect(await value(ROLE)).toBeUndefined();
      expect(await value(ACCEPT)).toBe("2");
      expect(await value(ROLE)).toBe("admin");
      expect(await value(ACCEPT)).toBeNull();
    }));

  test.each([
    ["service_role", BY_ALICE, "WRONG"],
    ["admin", "row (null, null, null, 2)::auth.client_info", "42501"],
  ])("as %s by %s is refused", (role, by, code) =>
    inAccounts(async ({ value }) => {
      await expect(value(invite(role, by))).rejects.toMatchObject({ code });
    }),
  );

  test("ends when its inviter is disabled", () =>
    inAccounts(async ({ rows, value }) => {
      await value(invite("admin"));
      await value("update auth.users set disabled_at = now() where user_id = 1");
      expect(await rows(`select from auth.find_invitation(${HASH})`)).toEqual([]);
      expect(await value(ACCEPT)).toBeNull();
      expect(await value(ROLE)).toBeUndefined();
    }));
});
