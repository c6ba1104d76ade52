import { createHash, randomBytes } from "node:crypto";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeFindApiKey } from "../../../accounts/identity/api-key-lookup.ts";
import type { FindApiKey } from "../../../accounts/identity/caller.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";

let questions = 0;
let warnings: string[] = [];
const log = { warn: (message: unknown) => void warnings.push(String(message)) };
let findKey: FindApiKey;

const database = useDatabase({ sql: "insert into users (name, email) values ('Ada', 'ada@example.com')" });
const owner = useClient(database.ownerUrl);
beforeEach(() => {
  questions = 0;
  warnings = [];
  findKey = makeFindApiKey({
    asOwner: (work) => {
      questions++;
      return work(owner);
    },
    log,
  });
});
afterEach(() => vi.useRealTimers());

const newKey = () => randomBytes(24).toString("base64url");

async function addKey({
  role = "authenticated",
  ownerId = null as string | null,
  expires = null as string | null,
} = {}) {
  const key = newKey();
  const { rows } = await owner.query<{ id: string }>(
    `insert into auth.api_keys (key_hash, prefix, role, owner_id, expires_at, created_at)
      values ($1, $2, $3, $4, now() + $5::interval, now() - interval '1 day') returning id`,
    [createHash("sha256").update(key).digest(), key.slice(0, 8), role, ownerId, expires],
  );
  return { key, id: rows[0]!.id };
}

async function ownerId(): Promise<string> {
  const { rows } = await owner.query<{ id: string }>("select id from users where email = 'ada@example.com'");
  return rows[0]!.id;
}

describe("a key of auth.api_keys", () => {
  test("has its role, and acts for its owner", async () => {
    const sub = await ownerId();
    const { key, id } = await addKey({ ownerId: sub });
    expect(await findKey(key)).toEqual({
      kind: "key",
      role: "authenticated",
      claims: { role: "authenticated", sub, api_key: id },
      claimsText: expect.stringContaining(`"api_key": "${id}"`),
      expiresAt: null,
    });
  });

  test("has no subject if it has no owner", async () => {
    const { key, id } = await addKey({ role: "service_role" });
    expect(await findKey(key)).toMatchObject({ role: "service_role", claims: { role: "service_role", api_key: id } });
    expect((await findKey(key))!.claims).not.toHaveProperty("sub");
  });

  test("is not found once it was revoked, or has expired, or its owner's account is disabled", async () => {
    const revoked = await addKey();
    await owner.query("update auth.api_keys set revoked_at = now() where id = $1", [revoked.id]);
    expect(await findKey(revoked.key)).toBeNull();

    expect(await findKey((await addKey({ expires: "-1 hour" })).key)).toBeNull();

    const disabled = await addKey({ ownerId: await ownerId() });
    await owner.query("insert into auth.users (user_id, username, disabled_at) values ($1, 'ada@example.com', now())", [
      await ownerId(),
    ]);
    expect(await findKey(disabled.key)).toBeNull();
    await owner.query("delete from auth.users");
  });

  test("a key with one character more or less is another key", async () => {
    const { key } = await addKey();
    expect(await findKey(`${key}A`)).toBeNull();
    expect(await findKey(key.slice(1))).toBeNull();
    expect(await findKey(key)).toMatchObject({ kind: "key" });
  });

  test("records its last use, to the minute", async () => {
    const { key, id } = await addKey();
    const lastUsed = async () =>
      (await owner.query("select last_used_at from auth.api_keys where id = $1", [id])).rows[0].last_used_at;
    expect(await lastUsed()).toBeNull();
    await findKey(key);
    const first = await lastUsed();
    expect(first).not.toBeNull();
    await makeFindApiKey({ asOwner: (work) => work(owner), log })(key);
    expect(await lastUsed()).toEqual(first);
  });

  test("is not blocked by a transaction that changes it", async () => {
    const { key, id } = await addKey();
    const other = new pg.Client({ connectionString: database.ownerUrl });
    await other.connect();
    await other.query("begin");
    await other.query("update auth.api_keys set name = 'renamed' where id = $1", [id]);
    expect(await findKey(key)).toMatchObject({ kind: "key" });
    await other.end();
  });
});

describe("Postgres is queried as little as possible", () => {
  test("a key is cached, valid or not", async () => {
    const { key } = await addKey();
    const rubbish = newKey();
    const caller = await findKey(key);
    await findKey(rubbish);
    expect(questions).toBe(2);
    expect(findKey(key)).toBe(caller);
    expect(findKey(rubbish)).toBeNull();
    expect(questions).toBe(2);
  });

  test("a cached key is queried again after some seconds, so that a revoked key ends within five", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { key, id } = await addKey();
    await findKey(key);
    await owner.query("update auth.api_keys set revoked_at = now() where id = $1", [id]);
    expect(findKey(key)).toMatchObject({ kind: "key" });
    vi.advanceTimersByTime(4_500);
    expect(await findKey(key)).toBeNull();
  });

  test("a key that expires meanwhile becomes invalid immediately", async () => {
    const { key } = await addKey({ expires: "1 hour" });
    expect(await findKey(key)).toMatchObject({ kind: "key" });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_601_000 });
    expect(await findKey(key)).toBeNull();
    expect(questions).toBe(1);
  });

  test("a thousand concurrent guesses are a few queries", async () => {
    const { key } = await addKey();
    const guesses = Array.from({ length: 1_000 }, newKey);
    const found = await Promise.all([...guesses, key].map((each) => findKey(each)));
    expect(found.filter((caller) => caller !== null)).toHaveLength(1);
    expect(questions).toBeLessThanOrEqual(2);
  });

  test("values that cannot be keys are never queried", async () => {
    for (const key of ["", "short", "with a space and thirty-two characters", "x".repeat(10_000), "é".repeat(40)]) {
      expect(findKey(key)).toBeNull();
    }
    expect(questions).toBe(0);
  });

  test("an error is not cached", async () => {
    const { key } = await addKey();
    let away = true;
    const find = makeFindApiKey({ asOwner: (work) => (away ? Promise.reject(new Error("away")) : work(owner)), log });
    await expect(find(key)).rejects.toThrow("away");
    away = false;
    expect(await find(key)).toMatchObject({ kind: "key" });
  });
});

test("a login that is not the owner cannot look keys up, which is logged once", async () => {
  const { key } = await addKey();
  const login = new pg.Client({ connectionString: database.url });
  await login.connect();
  const find = makeFindApiKey({ asOwner: (work) => work(login), log });
  expect(await find(key)).toBeNull();
  expect(await find(newKey())).toBeNull();
  expect(warnings).toEqual([expect.stringContaining("OWNER_DATABASE_URL")]);
  await login.end();
});

test("a database without API keys has none", async () => {
  const empty = await cloneDatabase("empty");
  const client = new pg.Client({ connectionString: empty.ownerUrl });
  await client.connect();
  try {
    expect(await makeFindApiKey({ asOwner: (work) => work(client), log })(newKey())).toBeNull();
    await client.query("create schema auth");
    expect(await makeFindApiKey({ asOwner: (work) => work(client), log })(newKey())).toBeNull();
  } finally {
    await client.end();
    await empty.drop();
  }
});
