import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";
import { openGateways, type Sent } from "../sign-in/gateways.ts";

const FUNCTIONS = `
  create table public.orders (id bigint generated always as identity primary key, item text not null);
  alter table public.orders enable row level security;
  create policy all_all on public.orders using (true) with check (true);
  grant select, insert on public.orders to anon, authenticated, service_role;
`;
const DEFAULTS: Readonly<Record<string, number>> = {
  "idempotency keys of a caller": 50_000,
  "idempotency keys of an anonymous caller": 20_000,
  "idempotency keys of all anonymous callers": 400_000,
  "bytes of kept responses of a caller": 16_777_216,
  "bytes of kept responses of all anonymous callers": 268_435_456,
};

const apikey = jwt.sign({ role: "anon" }, SECRET);
const LARGE = "x".repeat(20_000);

const gateways = useFixture(() => openGateways({ settings: { RATE_LIMIT: "0" } }));
beforeAll(async () => {
  await gateways.owner.query(FUNCTIONS);
  const isServed = async () =>
    (await gateways.get(`${gateways.one.url}/rest/v1/orders`, { headers: { apikey } })).status;
  await until(async () => (await isServed()) === 200);
});
beforeEach(async () => {
  await gateways.owner.query("delete from content_service.kept_answers; delete from public.orders");
  await bound(DEFAULTS);
});

async function bound(bounds: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, value] of Object.entries(bounds)) {
    const text = "update content_service.bounds set bound = $2, used = 0, used_at = '-infinity' where name = $1";
    expect((await gateways.owner.query(text, [name, value])).rowCount).toBe(1);
  }
}

function order(
  item: string,
  { from = "203.0.113.1", token, key = randomUUID() }: Sent & { readonly key?: string | undefined },
) {
  const headers = { apikey, "Idempotency-Key": key, Prefer: "return=representation" };
  return gateways.post(`${gateways.one.url}/rest/v1/orders`, { item }, { from, token, headers });
}

async function kept(): Promise<{ keys: number; bytes: number }> {
  const text =
    "select count(*)::int as keys, coalesce(sum(octet_length(sealed_answer)), 0)::int as bytes from content_service.kept_answers";
  return (await gateways.owner.query(text)).rows[0];
}

async function orders(): Promise<number> {
  return (await gateways.owner.query("select count(*)::int as n from public.orders")).rows[0].n;
}

describe("the responses kept for a caller", () => {
  test("take no more than the quota: beyond it the key and the status are kept, and a repetition does nothing twice", async () => {
    await bound({ "bytes of kept responses of a caller": 50_000 });
    const keys = Array.from({ length: 6 }, () => randomUUID());
    for (const key of keys) expect((await order(LARGE, { key })).status).toBe(201);
    expect((await kept()).bytes).toBeLessThan(60_000);
    const answers = [];
    for (const key of keys) answers.push(await order(LARGE, { key }));
    expect(await orders()).toBe(6);
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 201));
    expect(answers.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([
      ...["true", "true"],
      ...["status-only", "status-only", "status-only", "status-only"],
    ]);
    expect(answers[0]!.body).toMatchObject([{ item: LARGE }]);
    expect(answers[5]!.text).toBe("");
    const other = await order("another request", { key: keys[5] });
    expect([other.status, other.body.code]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
  });

  test("leave other callers their quota", async () => {
    await bound({ "bytes of kept responses of a caller": 30_000 });
    for (let index = 0; index < 3; index++) await order(LARGE, {});
    const key = randomUUID();
    await order(LARGE, { from: "203.0.113.2", key });
    expect((await order(LARGE, { from: "203.0.113.2", key })).body).toMatchObject([{ item: LARGE }]);
  });

  test("are those of the address for anonymous accounts", async () => {
    const token = jwt.sign({ sub: "4711", role: "authenticated", is_anonymous: true }, SECRET, { expiresIn: 60 });
    await order("tea", { token, from: "203.0.113.3" });
    const { rows } = await gateways.owner.query("select caller_key from content_service.kept_answers");
    expect(rows).toEqual([{ caller_key: "address 203.0.113.3" }]);
  });
});

describe("the Idempotency-Keys of a caller", () => {
  test("are so many: beyond it a request with a new key is 429 before it does anything, and kept ones are repeated", async () => {
    await bound({ "idempotency keys of an anonymous caller": 3 });
    const key = randomUUID();
    await order("tea", { key });
    for (let index = 0; index < 2; index++) expect((await order("tea", {})).status).toBe(201);
    const refused = await order("tea", {});
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await orders()).toBe(3);
    expect((await order("tea", { key })).headers.get("idempotent-replayed")).toBe("true");
    expect((await order("tea", { from: "203.0.113.2" })).status).toBe(201);
  });

  test("have no bound for servers of the operator", async () => {
    await bound({ "idempotency keys of a caller": 1, "bytes of kept responses of a caller": 1 });
    const token = jwt.sign({ role: "service_role", sub: "server" }, SECRET, { expiresIn: 60 });
    const key = randomUUID();
    for (const each of [randomUUID(), key]) expect((await order("tea", { token, key: each })).status).toBe(201);
    expect((await order("tea", { token, key })).body).toMatchObject([{ item: "tea" }]);
  });
});

describe("what is kept for all anonymous callers", () => {
  const from = (index: number) => `198.51.100.${index}`;

  test("is bounded in bytes", async () => {
    await bound({ "bytes of kept responses of all anonymous callers": 50_000 });
    for (let index = 0; index < 3; index++) await order(LARGE, { from: from(index) });
    await gateways.owner.query("select content_service.maintain_responses()");
    const before = (await kept()).bytes;
    for (let index = 3; index < 6; index++) expect((await order(LARGE, { from: from(index) })).status).toBe(201);
    expect((await kept()).bytes - before).toBeLessThan(2_000);
  });

  test("is bounded in keys, and there is room again when old ones are deleted", async () => {
    await bound({ "idempotency keys of all anonymous callers": 3 });
    for (let index = 0; index < 3; index++) await order("tea", { from: from(index) });
    await gateways.owner.query("select content_service.maintain_responses()");
    expect((await order("tea", { from: from(4) })).status).toBe(429);
    await gateways.owner.query("update content_service.kept_answers set expires_at = now()");
    await gateways.owner.query(
      "update content_service.bounds set used_at = '-infinity'; select content_service.maintain_responses()",
    );
    expect((await kept()).keys).toBe(0);
    expect((await order("tea", { from: from(4) })).status).toBe(201);
  });
});
