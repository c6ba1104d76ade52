import { expect, test } from "vitest";
import { Administration } from "../../accounts/administration.ts";
import { ensurePlaygroundUser } from "../../accounts/playground-user.ts";
import { useFixture } from "../fixture.ts";
import { openAccounts } from "./open-accounts.ts";

const USERS = `select user_id::text as key, password_hash as password, verified_email as verified, auth.user_json(user_id) ->> 'role' as role
  from auth.users where email = 'user@playground.localhost'`;

const opened = useFixture(openAccounts);

test("the user of a playground is created once, also by several pages at once, and again after it was deleted", async () => {
  const { asOwner } = opened;
  const find = async () => (await asOwner((client) => client.query(USERS))).rows;
  const [key, ...others] = await Promise.all(Array.from({ length: 4 }, () => ensurePlaygroundUser(asOwner)));
  expect(new Set(others)).toEqual(new Set([key]));
  expect(await find()).toEqual([{ key, password: null, verified: null, role: "authenticated" }]);
  await new Administration({ asOwner, policy: "standard" }).remove(key!, { keepsRow: false });
  expect(await find()).toEqual([]);
  const again = await ensurePlaygroundUser(asOwner);
  expect(again).not.toBe(key);
  expect(await find()).toMatchObject([{ key: again }]);
});
