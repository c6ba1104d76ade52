import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Caller, callerFromClaims } from "../../accounts/identity/caller.ts";
import { makeTokenKeys, type TokenKey } from "../../accounts/identity/token-keys.ts";
import { makeSigners } from "../../accounts/signers.ts";
import { useFixture } from "../fixture.ts";
import { CONFIG, claimsOf, from, KEYS, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

let remote: TokenKey[] = [];

const opened = useFixture(() => openAccounts({ claimsHook: "public.access_claims" }));
beforeAll(() => opened.owner.query("grant usage on schema public to supabase_auth_admin"));
beforeEach(() => define("select event"));

/** The function of CLAIMS_HOOK. */
async function define(body: string): Promise<void> {
  await opened.owner.query(`
    create or replace function public.access_claims(event jsonb) returns jsonb language sql as $hook$ ${body} $hook$;
    revoke execute on function public.access_claims from public;
    grant execute on function public.access_claims to supabase_auth_admin`);
}

const remoteKeys = { current: () => remote, refetch: async () => false };

/** Makes signers that have cached nothing of an account. */
const signers = (keys = KEYS, claimsHook: string | null = "public.access_claims") =>
  makeSigners({
    ...{ asOwner: opened.asOwner, keys, remoteKeys, log: { warn() {} } },
    config: { claimsHook, jwtIssuer: CONFIG.jwtIssuer },
  });

const callerOf = (claims: object, keyId?: string): Caller => ({
  ...callerFromClaims({ kind: "known", claimsText: JSON.stringify(claims), expiresAt: null }),
  ...(keyId !== undefined && { keyId }),
});

async function signIn(email: string, kind: "tokens" | "sessionTokens" = "sessionTokens"): Promise<Caller> {
  const { accounts } = opened;
  const pair = await accounts.login({ username: email, password: PASSWORD }, from(), accounts[kind].open);
  return callerOf(claimsOf(pair.accessToken));
}

const ended = { reason: "signerEnded" };
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);

describe("a signer with an account, as auth.signers describes it", () => {
  test("has the claims that the account has when the address is used, and those of the sign-in", async () => {
    const { email, userId } = await newPerson(opened);
    const caller = await signIn(email);
    const sealed = await signers().seal(caller);
    await sql(`update auth.users set raw_app_meta_data = '{"team": 7}' where user_id = $1`, userId);
    const { claims, role } = (await signers().open(sealed))!;
    const { session_id, aal, amr, sub } = caller.claims;
    expect([role, claims]).toMatchObject(["authenticated", { session_id, aal, amr, sub, app_metadata: { team: 7 } }]);
  });

  test.each(["tokens", "sessionTokens"] as const)(
    "has the claims that CLAIMS_HOOK adds to %s by then",
    async (kind) => {
      await define(`select jsonb_set(event, '{claims,team}', '"red"')`);
      const { email } = await newPerson(opened);
      const sealed = await signers().seal(await signIn(email, kind));
      expect((await signers().open(sealed))!.claims).toMatchObject({ team: "red" });
      await define(`select jsonb_set(event, '{claims,team}', '"blue"')`);
      expect((await signers().open(sealed))!.claims).toMatchObject({ team: "blue" });
      await define("select event");
      expect((await signers().open(sealed))!.claims).not.toHaveProperty("team");
      await define(`select jsonb_set(event, '{claims,role}', '"admin"')`);
      await expect(signers().open(sealed)).rejects.toMatchObject(ended);
      await define(`select '{"error": {"http_code": 403, "message": "no"}}'::jsonb`);
      await expect(signers().open(sealed)).rejects.toMatchObject(ended);
    },
  );

  test("has the claims of another issuer that shares the keys", async () => {
    const { userId } = await newPerson(opened);
    const sealed = await signers().seal(callerOf({ role: "authenticated", sub: userId, plan: "large" }));
    expect((await signers().open(sealed))!.claims).toEqual({ role: "authenticated", sub: userId, plan: "large" });
  });

  test.each([
    ["is disabled", "select auth.disable_account($1, null)"],
    ["is banned", "update auth.users set banned_until = now() + interval '1 day' where user_id = $1"],
    ["has another role", "select auth.assign_role($1, 'admin', null)"],
    ["is deleted", "delete from auth.users where user_id = $1"],
  ])("ends when the account %s", async (_, statement) => {
    const { email, userId } = await newPerson(opened);
    const sealed = await signers().seal(await signIn(email));
    expect((await signers().open(sealed))!.role).toBe("authenticated");
    await sql(statement, userId);
    // Records of deleted accounts are removed after a day.
    await sql("delete from auth.deleted_accounts");
    await expect(signers().open(sealed)).rejects.toMatchObject(ended);
  });

  test("stays when the user signs out, and when the password changes", async () => {
    const { email, userId } = await newPerson(opened);
    const sealed = await signers().seal(await signIn(email));
    await sql("select auth.end_access_tokens($1)", userId);
    await sql("update auth.refresh_tokens set revoked_at = now() where user_id = $1", userId);
    expect((await signers().open(sealed))!.claims.sub).toBe(userId);
  });

  test("ends with an administrator who acts as the user, and with the token of the administrator", async () => {
    const [admin, user] = [await newPerson(opened), await newPerson(opened)];
    await sql("select auth.assign_role($1, 'admin', null)", admin.userId);
    const claims = { role: "authenticated", sub: user.userId, act: { sub: admin.userId, user_id: admin.userId } };
    const soon = Math.floor(Date.now() / 1000) + 600;
    const seal = (expiresAt: number) => signers().seal({ ...callerOf(claims), expiresAt });
    const sealed = await seal(soon);
    expect((await signers().open(sealed))!.claims.sub).toBe(user.userId);
    await expect(signers().open(await seal(soon - 1200))).rejects.toMatchObject(ended);
    await sql("select auth.assign_role($1, 'authenticated', null)", admin.userId);
    await expect(signers().open(sealed)).rejects.toMatchObject(ended);
  });

  test("ends with the API key", async () => {
    const { userId } = await newPerson(opened);
    const { rows } = await sql(
      "insert into auth.api_keys (key_hash, prefix, role, owner_id) values (sha256($1), 'test', 'authenticated', $2) returning id",
      userId,
      userId,
    );
    const sealed = await signers().seal(callerOf({ role: "authenticated", api_key: rows[0].id, sub: userId }));
    expect((await signers().open(sealed))!.kind).toBe("key");
    await sql("update auth.api_keys set revoked_at = now() where id = $1", rows[0].id);
    await expect(signers().open(sealed)).rejects.toMatchObject(ended);
  });
});

describe("a signer without an account here", () => {
  const STRANGER = { role: "authenticated", sub: "of another issuer", email: "eve@example.org", exp: 1, jti: "x" };

  test("has the claims of the token that signed, which the address does not show", async () => {
    const sealed = await signers().seal(callerOf(STRANGER));
    expect(Buffer.from(sealed, "base64url").includes("eve@")).toBe(false);
    const { exp: _exp, jti: _jti, ...claims } = STRANGER;
    expect((await signers().open(sealed))!.claims).toEqual(claims);
  });

  test("ends with the key that has verified the token: ours, or one of the issuer's", async () => {
    const ofRole = await signers().seal(callerOf({ role: "service_role" }, KEYS.signing.id));
    expect((await signers().open(ofRole))!.role).toBe("service_role");
    const previous = await signers().seal(callerOf({ role: "service_role" }, "a previous key"));
    await expect(signers().open(previous)).rejects.toMatchObject(ended);
    remote = [{ ...KEYS.verifying[0]!, id: "of the issuer" }];
    const ofIssuer = await signers().seal(callerOf(STRANGER, "of the issuer"));
    expect((await signers().open(ofIssuer))!.claims.sub).toBe(STRANGER.sub);
    remote = [];
    await expect(signers().open(ofIssuer)).rejects.toMatchObject(ended);
  });
});

test("a signer can be read after the secret has changed, as long as the former one is accepted", async () => {
  const sealed = await signers().seal(callerOf({ role: "anon" }));
  const material = {
    jwtSecret: "a new secret of more than thirty-two letters",
    jwtSecretIsBase64: false,
    jwtPrivateKey: null,
  };
  const former = KEYS.signing.key.export().toString();
  const after = (jwtPreviousSecrets: string[]) =>
    signers(makeTokenKeys({ ...material, jwtPreviousSecrets })).open(sealed);
  expect((await after([former]))!.role).toBe("anon");
  expect(await after([])).toBeNull();
});

test("what others have sealed, or nobody, opens no signer", async () => {
  for (const text of ["", "x", Buffer.alloc(100).toString("base64url")]) expect(await signers().open(text)).toBeNull();
});
