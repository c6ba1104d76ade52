import { describe, expect, test } from "vitest";
import { admin, alice, anonymous, service } from "./callers.ts";
import { useContent } from "./content.ts";

const content = useContent();

async function uidOf(claims: string): Promise<unknown> {
  const { requests } = content;
  await requests.query("begin");
  await requests.query("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)", [
    claims,
  ]);
  const { rows } = await requests.query("select auth.uid() as uid");
  await requests.query("rollback");
  return rows[0].uid;
}

describe("auth.uid()", () => {
  test.each([
    ['{"sub":"7"}', "7"],
    ['{"sub":7}', "7"],
    ['{"sub":"999999999999999999"}', "999999999999999999"],
    ['{"sub":"9999999999999999999"}', null],
    ['{"sub":"007"}', null],
    ['{"sub":"-7"}', null],
    ['{"sub":"7 "}', null],
    ['{"sub":"7\\n"}', null],
    ['{"sub":"6f1c-uuid"}', null],
    ['{"sub":""}', null],
    ['{"sub":null}', null],
    ['{"sub":7.5}', null],
    ['{"sub":1e3}', "1000"],
    ['{"sub":["7"]}', null],
    ['{"act":{"sub":"7"}}', null],
    ["{}", null],
    ["[]", null],
    ["null", null],
    ['"7"', null],
    ["", null],
  ])("of the claims %s is %s", async (claims, uid) => {
    expect(await uidOf(claims)).toBe(uid);
  });

  test("is null on a connection that served another caller before", async () => {
    expect(await uidOf('{"sub":"7"}')).toBe("7");
    const { rows } = await content.requests.query("select current_setting('request.jwt.claims', true) as claims");
    expect(rows).toEqual([{ claims: "" }]);
    expect(await content.as({ role: "anon" }, "select auth.uid() as uid")).toEqual([{ uid: null }]);
  });
});

test("auth.jwt() returns the claims, or null without a token", async () => {
  expect(await content.as(alice, "select auth.jwt() as jwt")).toEqual([{ jwt: { role: "authenticated", sub: "1" } }]);
  await content.requests.query("begin");
  await content.requests.query("set local role anon");
  expect((await content.requests.query("select auth.jwt() as jwt")).rows).toEqual([{ jwt: null }]);
  await content.requests.query("rollback");
});

describe("auth.role() and auth.is_admin()", () => {
  test.each([
    [anonymous, "anon", false],
    [alice, "authenticated", false],
    [admin, "admin", true],
    [service, "service_role", false],
  ])("of %o are %s and %s", async (caller, role, isAdmin) => {
    expect(await content.as(caller, 'select auth.role(), auth.is_admin() as "isAdmin"')).toEqual([{ role, isAdmin }]);
  });

  test("use the current role, not a claim", async () => {
    const { requests } = content;
    await requests.query("begin");
    await requests.query(
      "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', '{\"role\":\"admin\"}', true)",
    );
    const { rows } = await requests.query("select auth.role(), auth.is_admin()");
    await requests.query("rollback");
    expect(rows).toEqual([{ role: "authenticated", is_admin: false }]);
  });

  test("use the caller in a SECURITY DEFINER function", async () => {
    await content.owner.query(`
      create function public.who() returns text language sql security definer set search_path = ''
        as $$ select auth.role() || ' ' || auth.is_admin() || ' ' || current_user $$;
      grant execute on function public.who to authenticated;
    `);
    expect(await content.as(alice, "select public.who()")).toEqual([{ who: "authenticated false postgres" }]);
    await content.owner.query("drop function public.who");
  });
});
