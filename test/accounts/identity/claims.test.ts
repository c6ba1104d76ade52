import { createHash, randomBytes } from "node:crypto";
import fc from "fast-check";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { makePasswordReader, makeSessionReader } from "../../../accounts/accounts.ts";
import { makeFindApiKey } from "../../../accounts/identity/api-key-lookup.ts";
import { makeAuthenticator } from "../../../accounts/identity/authenticator.ts";
import type { Caller } from "../../../accounts/identity/caller.ts";
import { parseClaims, serializeClaims } from "../../../accounts/identity/claims.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { from, newPerson, openAccounts, PASSWORD } from "../open-accounts.ts";

/** JavaScript would round it to the one below. */
const ORGANIZATION = "9007199254740993";

const opened = useFixture(openAccounts);
beforeAll(async () => {
  // A DBA who keeps organizations replaces the function like this.
  await opened.owner.query(`
    create or replace function auth.claims_of(user_id bigint) returns jsonb language sql stable
    begin atomic
      select jsonb_build_object('sub', user_id::text, 'role', 'authenticated', 'org', ${ORGANIZATION});
    end;
    create or replace function auth.use_api_keys(key_hashes bytea[])
    returns table (key_hash bytea, claims jsonb, expires_at timestamptz) language sql
    begin atomic
      select api_keys.key_hash, jsonb_build_object('role', api_keys.role, 'org', ${ORGANIZATION}), null::timestamptz
      from auth.api_keys where api_keys.key_hash = any (use_api_keys.key_hashes);
    end`);
});

async function byToken(): Promise<Caller> {
  const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
  const callers = makeAuthenticator({
    anonRole: "anon",
    jwtAudience: null,
    jwtRoleClaim: ["role"],
    jwtCacheEntries: 9,
    keys,
  });
  const token = jwt.sign(`{"role":"authenticated","org":${ORGANIZATION}}`, SECRET);
  return callers.authenticate({ authorization: `Bearer ${token}` });
}

async function byApiKey(): Promise<Caller | null> {
  const key = randomBytes(24).toString("base64url");
  await opened.owner.query("insert into auth.api_keys (key_hash, prefix, role) values ($1, $2, 'authenticated')", [
    createHash("sha256").update(key).digest(),
    key.slice(0, 8),
  ]);
  return makeFindApiKey({ asOwner: opened.asOwner, log: { warn: () => {} } })(key);
}

async function bySession(): Promise<Caller | null> {
  const { accounts } = opened;
  const { email } = await newPerson(opened);
  const { id } = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.sessions.open);
  return makeSessionReader(accounts.sessions)({ authorization: null, session: id });
}

async function byPassword(): Promise<Caller | null> {
  const { email } = await newPerson(opened);
  const login = { username: email, password: PASSWORD, clientInfo: from() };
  return makePasswordReader(opened.accounts)({ authorization: null, login });
}

test.each<[string, () => Promise<Caller | null>]>([
  ["token", byToken],
  ["API key", byApiKey],
  ["session", bySession],
  ["password", byPassword],
])("a number in a %s reaches Postgres digit for digit", async (_credential, identify) => {
  const caller = await identify();
  const { rows } = await opened.owner.query("select $1::jsonb ->> 'org' as org, $1::jsonb ->> 'role' as role", [
    caller!.claimsText,
  ]);
  expect(rows).toEqual([{ org: ORGANIZATION, role: "authenticated" }]);
  expect(caller!.role).toBe("authenticated");
});

describe("claims", () => {
  test("are serialized as they were parsed, with all digits of their numbers", () => {
    const digits = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }).map(String);
    const number = fc.oneof(digits, fc.constantFrom("1.0", "1e400", "-0", "0.10", "1E5"));
    fc.assert(
      fc.property(number, number, (one, other) => {
        const text = `{"sub":"7","org":${one},"app":{"teams":[${other}]}}`;
        expect(serializeClaims(parseClaims(text)!)).toBe(text);
      }),
    );
  });

  test.each(["[]", "null", "7", "{", ""])("%j is not an object of claims", (text) =>
    expect(parseClaims(text)).toBeNull(),
  );
});
