import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { jsonResponse } from "../../../http/response.ts";
import { openDatabase } from "../../../postgres/database/database.ts";
import type { RunStatement } from "../../../postgres/database/transaction.ts";
import { type IdempotentChange, runOnce } from "../../../rest-gateway/idempotency/idempotent-runner.ts";
import { useFixture } from "../../fixture.ts";
import { openShop } from "./orders.ts";

const shop = useFixture(openShop);
const database = useFixture(() =>
  openDatabase({ url: shop.url, ownerUrl: shop.ownerUrl, log: { info() {}, warn() {} } }),
);

const once = (change: IdempotentChange) => runOnce(change, { waitMilliseconds: 5_000, maxBytes: 1_000 });

/** A transaction of the owner's, as the private functions of sign-in need it. */
const transact: IdempotentChange["transact"] = (work) =>
  database.asOwner(async (client) => {
    const ask: RunStatement = ({ text, values }) =>
      client.query<(string | null)[]>({ text, values: [...values], rowMode: "array" });
    await client.query("begin");
    try {
      const response = await work(ask);
      await client.query("commit");
      return response;
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  });

/** Exchanges a token for another one, which is new each time. */
function rotation(token: string, key: string): IdempotentChange {
  return {
    key,
    scope: "refresh",
    identity: token,
    quota: { key: token, role: "anon" },
    request: [token],
    lifetimeSeconds: 10,
    signal: new AbortController().signal,
    transact,
    make: async (ask) => {
      await ask({ text: "insert into public.orders (item) values ($1)", values: [token] });
      return jsonResponse(200, { successor: randomUUID() });
    },
  };
}

describe("an idempotent change", () => {
  test("is made once while its response is stored, also by concurrent requests, and again after it expired", async () => {
    const [token, key] = [randomUUID(), randomUUID()];
    const result = await Promise.all([once(rotation(token, key)), once(rotation(token, key))]);
    const bodies = [...result, await once(rotation(token, key))].map(({ body }) => String(body));
    expect(new Set(bodies).size).toBe(1);
    expect(await shop.ordered(token)).toBe(1);

    await shop.owner.query("update content_service.kept_answers set expires_at = expires_at - interval '10 seconds'");
    expect(String((await once(rotation(token, key))).body)).not.toBe(bodies[0]);
    expect(await shop.ordered(token)).toBe(2);
  });

  test("returns its response to many concurrent retries without serializing them", async () => {
    const [token, key] = [randomUUID(), randomUUID()];
    await once(rotation(token, key));
    let attempts = 0;
    const counted: IdempotentChange["transact"] = (work) => {
      attempts++;
      return transact(work);
    };
    const result = await Promise.all(
      Array.from({ length: 20 }, () => once({ ...rotation(token, key), transact: counted })),
    );
    for (const { headers } of result) expect(headers).toHaveProperty("Idempotent-Replayed");
    expect(attempts).toBe(result.length);
  });

  test("is separate for another key, another caller or another part of the service", async () => {
    const [token, key] = [randomUUID(), randomUUID()];
    const base = rotation(token, key);
    const others = [base, { ...base, key: randomUUID() }, { ...base, identity: "x" }, { ...base, scope: "x" }];
    for (const change of others) expect((await once(change)).headers).not.toHaveProperty("Idempotent-Replayed");
    expect(await shop.ordered(token)).toBe(others.length);
  });

  test("waits for a concurrent attempt up to the limit, and not at all for a disconnected client", async () => {
    const [token, key] = [randomUUID(), randomUUID()];
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const slow = once({
      ...rotation(token, key),
      make: async () => {
        await gate;
        return jsonResponse(200, {});
      },
    });
    await shop.owner.query("select pg_sleep(0.2)");
    const impatient = runOnce(rotation(token, key), { waitMilliseconds: 1, maxBytes: 1_000 });
    await expect(impatient).rejects.toMatchObject({ status: 409 });
    await expect(once({ ...rotation(token, key), signal: AbortSignal.abort() })).rejects.toMatchObject({ status: 409 });

    const client = new AbortController();
    let attempts = 0;
    const leaving: IdempotentChange["transact"] = (work) => {
      attempts++;
      const attempt = transact(work);
      attempt.catch(() => setTimeout(() => client.abort(), 1));
      return attempt;
    };
    const left = once({ ...rotation(token, key), signal: client.signal, transact: leaving });
    await expect(left).rejects.toMatchObject({ status: 409 });
    expect(attempts).toBe(1);
    open();
    expect((await slow).status).toBe(200);
    expect(await shop.ordered(token)).toBe(0);
  });
});
