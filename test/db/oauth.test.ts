import { hash, randomBytes } from "node:crypto";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useContent } from "./content.ts";

const content = useContent();

const CLIENT = {
  name: "Films",
  redirect_uris: ["https://films.example/callback"],
  grant_types: ["authorization_code", "refresh_token"],
  auth_method: "none",
  registration: "manual",
};
const VERIFIER = "v".repeat(43);
const challengeOf = (verifier: string) => hash("sha256", verifier, "base64url");
const digest = (text: string) => hash("sha256", text, "buffer");

let users: readonly string[];

beforeAll(async () => {
  const { rows } = await content.owner.query(
    "select auth.add_account(name, name || '@films.example', 'authenticated', '$hash', null)::text as id from unnest($1::text[]) as name",
    [["anna", "ben"]],
  );
  users = rows.map(({ id }) => id);
});
beforeEach(() => content.owner.query("begin"));
afterEach(() => content.owner.query("rollback"));

async function call<T = Record<string, unknown>>(text: string, ...values: unknown[]): Promise<T[]> {
  return (await content.owner.query<T & object>(text, values)).rows as T[];
}

async function count(table: string, condition = "true"): Promise<number> {
  return (await call<{ n: number }>(`select count(*)::int as n from ${table} where ${condition}`))[0]!.n;
}

async function bound(name: string, value: number): Promise<void> {
  await call("update content_service.bounds set bound = $2 where name = $1", name, value);
}

async function saveClient(changes: object = {}, secret: Buffer | null = null): Promise<string> {
  const client = JSON.stringify({ ...CLIENT, ...changes });
  const [row] = await call<{ id: string }>("select (auth.save_oauth_client($1, $2, null)).id", client, secret);
  return row!.id;
}

async function begin(clientId: string, changes: object = {}, address: string | null = null): Promise<string> {
  const request = {
    client_id: clientId,
    redirect_uri: CLIENT.redirect_uris[0],
    scopes: ["read"],
    resource: "https://api.example",
    challenge: challengeOf(VERIFIER),
    ...changes,
  };
  const [row] = await call<{ id: string }>(
    "select auth.begin_oauth_authorization($1, 600, row($2::inet, null, null, null)::auth.client_info) as id",
    JSON.stringify(request),
    address,
  );
  return row!.id;
}

async function open(id: string, user: string) {
  return call<{ is_granted: boolean }>("select is_granted from auth.open_oauth_authorization($1, $2)", id, user);
}

async function approve(id: string, user: string, days = 90): Promise<string | null> {
  await open(id, user);
  const code = randomBytes(8).toString("hex");
  const [row] = await call<{ approved: boolean }>(
    "select auth.approve_oauth_authorization($1, $2, now(), $3, 300, $4, null) as approved",
    ...[id, user, digest(code), days],
  );
  return row!.approved ? code : null;
}

type Exchange = { outcome: string; session: string; claims: { session_id: string } | null };

async function exchange(code: string, clientId: string, changes: { redirect?: string; verifier?: string } = {}) {
  const { redirect = CLIENT.redirect_uris[0], verifier = VERIFIER } = changes;
  const token = randomBytes(8).toString("hex");
  const [row] = await call<Exchange>(
    "select outcome, claims, (session).session_id as session from auth.exchange_oauth_code($1, $2, $3, $4, $5, null)",
    ...[digest(code), clientId, redirect, challengeOf(verifier), digest(token)],
  );
  return { ...row!, token };
}

async function refresh(token: string, clientId: string) {
  const next = randomBytes(8).toString("hex");
  const [row] = await call<{ outcome: string }>(
    "select outcome from auth.refresh_oauth_tokens($1, $2, $3, null)",
    ...[digest(token), digest(next), clientId],
  );
  return { outcome: row!.outcome, token: next };
}

async function isLive(session: string, clientId: string): Promise<boolean> {
  const ended = await call("select from auth.ended_token_sessions($1) as id", [session]);
  const found = await call("select from auth.find_oauth_session($1, null, $2)", clientId, session);
  expect(found.length > 0).toBe(ended.length === 0);
  return found.length > 0;
}

async function granted(user = users[0]!) {
  const client = await saveClient();
  const code = await approve(await begin(client), user);
  return { client, user, code: code!, ...(await exchange(code!, client)) };
}

describe("an authorization", () => {
  test("belongs to the first user who opens it", async () => {
    const id = await begin(await saveClient());
    expect(await open(id, users[0]!)).toHaveLength(1);
    expect(await open(id, users[1]!)).toHaveLength(0);
    expect(await open(id, users[0]!)).toHaveLength(1);
    expect((await call("select auth.deny_oauth_authorization($1, $2) as denied", id, users[1]))[0]).toEqual({
      denied: false,
    });
    expect((await call("select auth.deny_oauth_authorization($1, $2) as denied", id, users[0]))[0]).toEqual({
      denied: true,
    });
    expect(await open(id, users[0]!)).toHaveLength(0);
  });

  test("is approved once, and not after its time", async () => {
    const client = await saveClient();
    const id = await begin(client);
    expect(await approve(id, users[0]!)).not.toBeNull();
    expect(await approve(id, users[0]!)).toBeNull();
    const late = await begin(client);
    await call("update auth.oauth_authorizations set created_at = now() - interval '1 hour', expires_at = now()");
    expect(await approve(late, users[0]!)).toBeNull();
  });

  test.each([
    ["disabled", "disabled_at = now()"],
    ["banned", "banned_until = now() + interval '1 day'"],
    ["anonymous", "is_anonymous = true"],
  ])("is not approved by an account that is %s", async (_title, change) => {
    const id = await begin(await saveClient());
    await open(id, users[0]!);
    await call(`update auth.users set ${change} where user_id = $1`, users[0]);
    expect(await approve(id, users[0]!)).toBeNull();
  });

  test("was granted before only to an application that keeps a secret, for the same resource and no more scopes", async () => {
    const confidential = await saveClient({ auth_method: "client_secret_basic" }, digest("secret"));
    const isGranted = async (client: string, changes: object = {}) =>
      (await open(await begin(client, changes), users[0]!))[0]!.is_granted;
    expect(await isGranted(confidential)).toBe(false);
    await approve(await begin(confidential), users[0]!);
    expect(await isGranted(confidential)).toBe(true);
    expect(await isGranted(confidential, { scopes: ["read", "write"] })).toBe(false);
    expect(await isGranted(confidential, { resource: "https://api.example/mcp" })).toBe(false);
    expect(await isGranted(confidential, { asks_always: true })).toBe(false);
    const open_ = await saveClient();
    await approve(await begin(open_), users[0]!);
    expect(await isGranted(open_)).toBe(false);
  });
});

describe("a code", () => {
  test("is exchanged once; another use of it ends the sign-in", async () => {
    const { outcome, claims, session, code, client, token } = await granted();
    expect(outcome).toBe("passed");
    expect(claims!.session_id).toBe(session);
    expect(await isLive(session, client)).toBe(true);
    expect((await exchange(code, client)).outcome).toBe("reused");
    expect(await isLive(session, client)).toBe(false);
    expect((await refresh(token, client)).outcome).toBe("ended");
  });

  test("is used up by nobody else: another client, address or verifier", async () => {
    const client = await saveClient();
    const other = await saveClient();
    const code = (await approve(await begin(client), users[0]!))!;
    expect((await exchange("guess", client)).outcome).toBe("absent");
    expect((await exchange(code, other)).outcome).toBe("absent");
    expect((await exchange(code, client, { redirect: "https://evil.example" })).outcome).toBe("redirect");
    expect((await exchange(code, client, { verifier: "w".repeat(43) })).outcome).toBe("verifier");
    expect((await exchange(code, client)).outcome).toBe("passed");
  });

  test.each([
    [
      "the account is banned",
      "update auth.users set banned_until = now() + interval '1 day' where user_id = $1",
      "ended",
    ],
    ["the password changes", "select auth.set_password($1, '$new', null)", "absent"],
    ["the user signs out everywhere", "select auth.sign_out($1, null, 'global', null)", "absent"],
    ["the grant is withdrawn", "delete from auth.oauth_grants where user_id = $1", "ended"],
  ])("is worth nothing after %s", async (_title, change, expected) => {
    const client = await saveClient();
    const code = (await approve(await begin(client), users[0]!))!;
    await call(change, users[0]);
    expect((await exchange(code, client)).outcome).toBe(expected);
  });
});

describe("a refresh token", () => {
  test("is exchanged for another; used twice, it ends the sign-in", async () => {
    const { client, token, session } = await granted();
    const next = await refresh(token, client);
    expect(next.outcome).toBe("rotated");
    expect((await refresh(token, client)).outcome).toBe("reused");
    expect((await refresh(next.token, client)).outcome).toBe("ended");
    expect(await isLive(session, client)).toBe(false);
  });

  test("is of no use to another application, which does not use it up", async () => {
    const { client, token } = await granted();
    expect((await refresh(token, await saveClient())).outcome).toBe("ended");
    expect((await refresh(token, client)).outcome).toBe("rotated");
  });

  test("of a user's own sign-in is none of an application", async () => {
    const client = await saveClient();
    await call("select auth.open_tokens($1, $2, 3600, null)", users[0], digest("own"));
    expect((await refresh("own", client)).outcome).toBe("ended");
  });

  test("ends with the time of the grant", async () => {
    const { client, token } = await granted();
    await call("update auth.oauth_grants set granted_at = now() - interval '1 day', expires_at = now()");
    expect((await refresh(token, client)).outcome).toBe("ended");
  });

  test("is not prolonged by a later consent to less, and its scopes are listed until it ends", async () => {
    const [client, user] = [await saveClient(), users[0]!];
    const scopes = async () =>
      (await call<{ scopes: string[] }>("select (granted).scopes from auth.list_oauth_grants($1)", user))[0]!.scopes;
    const wide = await approve(await begin(client, { scopes: ["read", "write"] }), user, 30);
    const { token, session } = await exchange(wide!, client);
    const narrow = await approve(await begin(client), user, 90);
    expect((await exchange(narrow!, client)).outcome).toBe("passed");
    expect(await scopes()).toEqual(["read", "write"]);
    const [refreshed] = await call(
      `select outcome, (session).scopes, expires_at between now() + interval '29 days' and now() + interval '31 days' as "isEarly"
       from auth.refresh_oauth_tokens($1, $2, $3, null)`,
      ...[digest(token), digest("next"), client],
    );
    expect(refreshed).toEqual({ outcome: "rotated", scopes: ["read", "write"], isEarly: true });
    await call("select auth.end_oauth_sessions($1)", [session]);
    expect(await scopes()).toEqual(["read"]);
  });
});

describe("a grant ends", () => {
  test.each([
    ["when the user withdraws it", "select auth.withdraw_oauth_grant($1, $2, null)"],
    ["when the application is removed", "select auth.remove_oauth_client($2, null), $1::bigint"],
    ["for a password change", "select auth.set_password($1, '$new', null), $2::text"],
    ["when the account is banned", "update auth.users set disabled_at = now() where user_id = $1 and $2 <> ''"],
  ])("%s", async (_title, change) => {
    const { client, token, session, user } = await granted();
    expect(await call("select from auth.list_oauth_grants($1)", user)).toHaveLength(1);
    await call(change, user, client);
    expect(await call("select from auth.find_oauth_session($1, null, $2)", client, session)).toHaveLength(0);
    expect((await refresh(token, client)).outcome).toBe("ended");
  });

  test("by one of its tokens, which the application revokes", async () => {
    const { client, token, session } = await granted();
    const revoke = (by: string, hashed: Buffer | null, id: string | null) =>
      call("select auth.revoke_oauth_token($1, $2, $3, null)", by, hashed, id);
    await revoke(await saveClient(), digest(token), session);
    await revoke(client, digest("unknown"), null);
    expect(await isLive(session, client)).toBe(true);
    await revoke(client, digest(token), null);
    expect(await isLive(session, client)).toBe(false);
    const second = await granted(users[1]);
    await revoke(second.client, null, second.session);
    expect(await isLive(second.session, second.client)).toBe(false);
  });

  test("of one application only", async () => {
    const first = await granted();
    const second = await granted();
    await call("select auth.withdraw_oauth_grant($1, $2, null)", first.user, first.client);
    expect(await isLive(second.session, second.client)).toBe(true);
    await call("select auth.end_oauth_sessions($1)", [second.session]);
    expect(await isLive(second.session, second.client)).toBe(false);
  });
});

describe("what strangers can make grow", () => {
  test("requests for access: the oldest of nobody end beyond the bound", async () => {
    const client = await saveClient();
    await bound("rows of auth.oauth_authorizations", 5);
    for (let n = 0; n < 12; n++) await begin(client);
    expect(await count("auth.oauth_authorizations")).toBe(5);
    await call(
      "update auth.oauth_authorizations set created_at = now() - interval '1 hour', expires_at = now() - interval '1 minute'",
    );
    await begin(client);
    expect(await count("auth.oauth_authorizations")).toBe(1);
  });

  test("requests for access: a network evicts its own, an IPv6 /64 as one", async () => {
    const client = await saveClient();
    await bound("unopened authorizations of a network", 3);
    const [of4, of6] = [await begin(client, {}, "192.0.2.1"), await begin(client, {}, "2001:db8:1:2::1")];
    const own = [];
    for (let n = 0; n < 9; n++) own.push(await begin(client, {}, `2001:db8:9:9::${n}`));
    for (const id of [of4, of6, ...own.slice(-3)]) expect(await open(id, users[0]!)).toHaveLength(1);
    for (const id of own.slice(0, -3)) expect(await open(id, users[0]!)).toHaveLength(0);
  });

  test("requests for access: those of a client evict that client's, of the network with most first", async () => {
    const [flooded, other] = [await saveClient(), await saveClient()];
    await bound("unopened authorizations of a client", 4);
    const kept = await begin(other, {}, "192.0.2.1");
    const first = await begin(flooded, {}, "192.0.2.2");
    const flood = [];
    for (let n = 0; n < 6; n++) flood.push(await begin(flooded, {}, "198.51.100.1"));
    expect(await open(kept, users[0]!)).toHaveLength(1);
    expect(await open(first, users[0]!)).toHaveLength(1);
    expect(await count("auth.oauth_authorizations")).toBe(5);
    expect(await open(flood.at(-1)!, users[0]!)).toHaveLength(1);
    expect(await open(flood[0]!, users[0]!)).toHaveLength(0);
  });

  test("requests for access: when all are full, the client with most loses the oldest", async () => {
    const [flooded, other] = [await saveClient(), await saveClient()];
    await bound("rows of auth.oauth_authorizations", 5);
    const kept = await begin(other, {}, "192.0.2.1");
    for (let n = 0; n < 12; n++) await begin(flooded, {}, `198.51.100.${n}`);
    const last = await begin(other, {}, "192.0.2.3");
    expect(await count("auth.oauth_authorizations")).toBe(5);
    for (const id of [kept, last]) expect(await open(id, users[0]!)).toHaveLength(1);
  });

  test("auth.trim_oauth_authorizations makes room for one more request of the network, and for no other", async () => {
    const client = await saveClient();
    await bound("unopened authorizations of a network", 3);
    const elsewhere = await begin(client, {}, "192.0.2.1");
    const own = [];
    for (let n = 0; n < 3; n++) own.push(await begin(client, {}, "198.51.100.1"));
    await call("select auth.trim_oauth_authorizations($1, auth.network_of('198.51.100.1'))", client);
    for (const id of [elsewhere, ...own.slice(1)]) expect(await open(id, users[0]!)).toHaveLength(1);
    expect(await open(own[0]!, users[0]!)).toHaveLength(0);
  });

  test("applications that register themselves: those without a grant make room, others stay", async () => {
    await bound("registered clients", 3);
    const register = () => saveClient({ registration: "dynamic" });
    const kept = await register();
    await approve(await begin(kept), users[0]!);
    for (let n = 0; n < 6; n++) await register();
    expect(await count("auth.oauth_clients", "registration = 'dynamic'")).toBe(3);
    expect(await count("auth.oauth_clients", `id = '${kept}'`)).toBe(1);
    await call("update auth.oauth_clients set created_at = now() - interval '2 days'");
    await call("select auth.trim_oauth_clients()");
    expect(await count("auth.oauth_clients", "registration = 'dynamic'")).toBe(1);
    await bound("registered clients", 1);
    await expect(register()).rejects.toMatchObject({ code: "TOMNY" });
  });

  test("grants of a user", async () => {
    await bound("grants of a user", 2);
    for (let n = 0; n < 2; n++) await approve(await begin(await saveClient()), users[0]!);
    await expect(approve(await begin(await saveClient()), users[0]!)).rejects.toMatchObject({ code: "TOMNY" });
  });

  test("sign-ins of a grant: the one that was used longest ago ends", async () => {
    await bound("sign-ins of a grant", 2);
    const client = await saveClient();
    const sessions: string[] = [];
    for (let n = 0; n < 4; n++) {
      sessions.push((await exchange((await approve(await begin(client), users[0]!))!, client)).session);
    }
    const live: boolean[] = [];
    for (const session of sessions) live.push(await isLive(session, client));
    expect(live).toEqual([false, false, true, true]);
  });
});

test("the registration of an application is replaced by one of the same kind only", async () => {
  const id = await saveClient();
  expect(await saveClient({ id, name: "Other" })).toBe(id);
  expect(await saveClient({ id, registration: "document", fresh_until: "2030-01-01" })).toBeNull();
  expect(await call("select name from auth.oauth_clients where id = $1", id)).toEqual([{ name: "Other" }]);
});

test("codes end with the user's tokens, by a trigger", async () => {
  const triggers = await call("select from pg_trigger where tgfoid = 'auth.tg_users__end_oauth_codes()'::regprocedure");
  expect(triggers).toHaveLength(1);
});
