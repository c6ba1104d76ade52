import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";
import { useFixture } from "../fixture.ts";
import { serve, useService } from "../serve.ts";
import { until } from "../until.ts";
import { newOrder, openShop } from "./idempotency/orders.ts";
import { openClient, type TestRequest, type TestResponse } from "./table/client.ts";

const ALICE = { role: "authenticated", sub: "1" };
const BOB = { role: "authenticated", sub: "2" };

const shop = useFixture(openShop);
const service = useService({
  database: shop,
  settings: { PGRST_DB_TX_END: "commit-allow-override", PGRST_DB_PLAN_ENABLED: "true" },
});
const other = useService({ database: shop, settings: { PGRST_DB_TX_END: "commit-allow-override" } });
const client = useFixture(() => openClient(service.url, { connections: 40 }));
const elsewhere = useFixture(() => openClient(other.url, { connections: 40 }));

const isReplay = ({ headers }: TestResponse) => headers["idempotent-replayed"] === "true";
/** The parts of a response that clients compare; the rest is new each time. */
const answered = ({ status, headers, text }: TestResponse) => {
  const { date, "x-request-id": _id, "idempotent-replayed": _replayed, ...others } = headers;
  return { status, headers: others, text };
};

describe("a write that is repeated with its Idempotency-Key", () => {
  const requests: Record<string, (item: string) => readonly [path: string, asked: TestRequest]> = {
    "an insert": (item) => [
      "/orders",
      { method: "POST", body: { item }, headers: { Prefer: "return=headers-only, count=exact" } },
    ],
    "an insert in bulk": (item) => [
      "/orders?select=id,item",
      { method: "POST", body: [{ item }, { item }], headers: { Prefer: "return=representation" } },
    ],
    "an upsert": (item) => [
      "/stock?on_conflict=item",
      {
        method: "POST",
        body: { item, pieces: 3 },
        headers: { Prefer: "resolution=merge-duplicates, return=representation" },
      },
    ],
    "a PUT": (item) => [`/stock?item=eq.${item}`, { method: "PUT", body: { item, pieces: 4 } }],
    "a function": (item) => ["/rpc/order_item", { method: "POST", body: { item } }],
    "a function that says its own status and headers": (item) => [
      "/rpc/order_teapot",
      { method: "POST", body: { item } },
    ],
    "one that asks for CSV": (item) => [
      "/orders",
      { method: "POST", body: { item }, headers: { Accept: "text/csv", Prefer: "return=representation" } },
    ],
  };

  test.each(Object.entries(requests))("%s runs once and gets the same response again", async (_what, make) => {
    const { item, headers } = newOrder();
    const [path, request] = make(item);
    const withKey = { ...request, headers: { ...request.headers, ...headers } };
    const first = await client.ask(path, withKey);
    expect(first.status).toBeOneOf([200, 201, 204, 418]);
    expect(isReplay(first)).toBe(false);
    const effects = await shop.ordered(item);

    for (const gateway of [client, elsewhere]) {
      const again = await gateway.ask(path, withKey);
      expect(isReplay(again)).toBe(true);
      expect(answered(again)).toEqual(answered(first));
    }
    expect(await shop.ordered(item)).toBe(effects);
    // Without the key it is made again, so the numbers above mean something.
    const unkeyed = await client.ask(path, request);
    expect(unkeyed.status).toBeOneOf([200, 201, 204, 418]);
    expect(isReplay(unkeyed)).toBe(false);
    expect(await shop.ordered(item)).toBe(2 * effects);
  });

  test("a response is the same as without the key", async () => {
    const request = { method: "POST", headers: { Prefer: "return=headers-only, count=exact, tx=commit" } };
    const { item, headers } = newOrder();
    const plain = await client.ask("/orders", { ...request, body: { item } });
    const keyed = await client.ask("/orders", {
      ...request,
      body: { item },
      headers: { ...request.headers, ...headers },
    });
    const location = expect.stringMatching(/^\/orders\?id=eq\.\d+$/);
    const expected = { ...answered(plain), headers: { ...answered(plain).headers, location } };
    expect(expected.headers).toMatchObject({ "content-range": "*/1", "preference-applied": expect.any(String) });
    expect(answered(keyed)).toEqual(expected);
  });

  test("repeated headers are repeated again", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item }, headers };
    await client.ask("/rpc/order_teapot", request);
    const again = await client.ask("/rpc/order_teapot", request);
    expect(again.headers).toMatchObject({ "x-tea": "ready", "set-cookie": ["a=1", "b=2"] });
  });

  test("an update runs once, and later changes by others are kept", async () => {
    const { headers } = newOrder();
    const set = (pieces: number) =>
      shop.owner.query("update public.stock set pieces = $1 where item = 'tea'", [pieces]);
    const pieces = async () =>
      (await shop.owner.query("select pieces from public.stock where item = 'tea'")).rows[0]?.pieces;
    const change = { method: "PATCH", body: { pieces: 7 }, headers: { ...headers, Prefer: "count=exact" } };
    const first = await client.ask("/stock?item=eq.tea", change);
    expect(first.headers["content-range"]).toBe("0-0/1");
    await set(99);
    const again = await client.ask("/stock?item=eq.tea", change);
    expect(answered(again)).toEqual(answered(first));
    expect(await pieces()).toBe(99);
  });

  test("a deletion runs once, and a row that was inserted again since is kept", async () => {
    const { item, headers } = newOrder();
    await client.ask("/orders", { method: "POST", body: { item } });
    const remove = { method: "DELETE", headers: { ...headers, Prefer: "return=representation" } };
    const first = await client.ask(`/orders?item=eq.${item}`, remove);
    expect(first.body).toMatchObject([{ item }]);
    await client.ask("/orders", { method: "POST", body: { item } });
    const again = await client.ask(`/orders?item=eq.${item}`, remove);
    expect(answered(again)).toEqual(answered(first));
    expect(await shop.ordered(item)).toBe(1);
  });

  test("an update without matching rows counts as run: rows that match later are unchanged", async () => {
    const { item, headers } = newOrder();
    const remove = { method: "DELETE", headers: { ...headers, Prefer: "count=exact" } };
    expect((await client.ask(`/orders?item=eq.${item}`, remove)).headers["content-range"]).toBe("*/0");
    await client.ask("/orders", { method: "POST", body: { item } });
    expect(isReplay(await client.ask(`/orders?item=eq.${item}`, remove))).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("deferred triggers see the caller, not the gateway", async () => {
    const { item, headers } = newOrder();
    await client.ask("/orders", { method: "POST", body: { item: `${item} checked` }, headers, as: ALICE });
    expect(await shop.ordered(`${item} checked by authenticated`)).toBe(1);
  });
});

describe("a response that is not stored", () => {
  test("is an error: the request has changed nothing, and its key can be used again", async () => {
    const { item, headers } = newOrder();
    const wrong = { method: "POST", body: { item, pieces: 0 }, headers };
    for (const _ of [1, 2]) {
      const refused = await client.ask("/orders", wrong);
      expect(refused).toMatchObject({ status: 400, body: { code: "23514" } });
      expect(isReplay(refused)).toBe(false);
    }
    expect((await client.ask("/orders", { ...wrong, body: { item } })).status).toBe(201);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("is an error as late as the commit", async () => {
    const { headers } = newOrder();
    const doomed = { method: "POST", body: { item: "doomed" }, headers };
    for (const _ of [1, 2]) expect((await client.ask("/orders", doomed)).body).toMatchObject({ code: "23514" });
    expect(await shop.ordered("doomed")).toBe(0);
  });

  test("is one that cannot be created: the change is rolled back with it", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: [{ item }, { item }] };
    const Accept = "application/vnd.pgrst.object+json";
    const single = { ...request, headers: { ...headers, Accept, Prefer: "return=representation" } };
    expect((await client.ask("/orders", single)).body).toMatchObject({ code: "PGRST116" });
    expect(await shop.ordered(item)).toBe(0);
  });

  test("a rehearsal", async () => {
    const { item, headers } = newOrder();
    const rehearsal = { method: "POST", body: { item }, headers: { ...headers, Prefer: "tx=rollback" } };
    for (const _ of [1, 2]) {
      const response = await client.ask("/orders", rehearsal);
      expect(response.status).toBe(201);
      expect(isReplay(response)).toBe(false);
    }
    expect(await shop.ordered(item)).toBe(0);
    const real = await client.ask("/orders", { method: "POST", body: { item }, headers });
    expect(real.status).toBe(201);
    expect(isReplay(real)).toBe(false);
  });

  test("is that of a read, or of a read-only function: each runs again", async () => {
    const { item, headers } = newOrder();
    const count = { method: "POST", body: { item }, headers };
    expect((await client.ask("/rpc/count_orders", count)).body).toBe(0);
    await client.ask("/orders", { method: "POST", body: { item } });
    expect((await client.ask("/rpc/count_orders", count)).body).toBe(1);
    expect((await client.ask("/orders?limit=1", { headers: { "Idempotency-Key": "two words" } })).status).toBe(200);
  });

  test("is one above the limit: nothing is changed, and the client gets an error with a remedy", async () => {
    const small = await serve(shop, { MAX_BODY_BYTES: "2048" });
    const asking = openClient(small.url);
    const ask = (n: number) =>
      asking.ask("/rpc/many_letters", { method: "POST", body: { n }, headers: newOrder().headers });
    expect((await ask(2000)).status).toBe(200);
    expect(await ask(3000)).toMatchObject({ status: 400, body: { code: "ANSWER_TOO_LARGE" } });
    asking.close();
    await small.stop();
  });
});

describe("a large answer", () => {
  test("is repeated byte for byte", async () => {
    const request = { method: "POST", body: { n: 3_000_000 }, headers: newOrder().headers };
    const first = await client.ask("/rpc/many_letters", request);
    const again = await elsewhere.ask("/rpc/many_letters", request);
    expect(first.text).toHaveLength(3_000_002);
    expect(isReplay(again)).toBe(true);
    expect(again.text === first.text).toBe(true);
  });
});

describe("the same key with another request", () => {
  test.each<[string, string, TestRequest]>([
    ["another body", "/orders", { body: { item: "another" } }],
    ["the same body, written otherwise", "/orders", { body: '{ "item": "tea" }' }],
    ["another method", "/orders?item=eq.nothing", { method: "DELETE", body: null }],
    ["another table", "/stock", {}],
    ["another query", "/orders?columns=item", {}],
    ["another preference", "/orders", { headers: { Prefer: "return=representation" } }],
    ["another media type", "/orders", { headers: { Accept: "text/csv" } }],
    ["another profile", "/orders", { headers: { "Content-Profile": "public" } }],
  ])("is refused: %s", async (_what, path, change) => {
    const { headers } = newOrder();
    const body = { item: "tea" };
    const first = await client.ask("/orders", { method: "POST", body, headers });
    expect(first.status).toBe(201);
    const before = await shop.ordered("tea");
    const request = { method: "POST", body, ...change, headers: { ...headers, ...change.headers } };
    expect(await client.ask(path, request)).toMatchObject({ status: 422, body: { code: "IDEMPOTENCY_KEY_REUSED" } });
    expect(await shop.ordered("tea")).toBe(before);
    expect(isReplay(await client.ask("/orders", { method: "POST", body, headers }))).toBe(true);
  });
});

describe("the sender of a key", () => {
  const order = (as: TestRequest["as"], { item, headers }: ReturnType<typeof newOrder>) =>
    client.ask("/rpc/order_item", { method: "POST", body: { item }, headers, ...(as && { as }) });

  test("gets its own response only", async () => {
    const shared = newOrder();
    const callers = [ALICE, BOB, undefined, { role: "authenticated" }, { ...ALICE, role: "anon" }];
    const first = [];
    for (const caller of callers) first.push(await order(caller, shared));
    expect(first.map(isReplay)).toEqual(callers.map(() => false));
    expect(await shop.ordered(shared.item)).toBe(callers.length);
    const again = await Promise.all(callers.map((caller) => order(caller, shared)));
    expect(again.map(({ text }) => text)).toEqual(first.map(({ text }) => text));
    expect(again.every(isReplay)).toBe(true);
  });

  test("is the same user with a new token", async () => {
    const mine = newOrder();
    await order({ ...ALICE, iat: 1, jti: "a", name: "Alice" }, mine);
    expect(isReplay(await order({ ...ALICE, iat: 2, jti: "b", name: "Alicia" }, mine))).toBe(true);
  });

  test("may be one of many with the same anon key, who are distinguished by their Idempotency-Key only", async () => {
    const [mine, yours] = [newOrder(), newOrder()];
    await order(undefined, mine);
    expect(isReplay(await order(undefined, yours))).toBe(false);
  });
});

describe("an Idempotency-Key among the filters", () => {
  test("is a filter on a column with that name: changes of two rows are two requests", async () => {
    const { item, headers } = newOrder();
    await shop.owner.query(`
      create table if not exists public.programs (api_key text primary key, note text);
      grant select, update on public.programs to anon, authenticated;
      insert into public.programs values ('a'), ('b') on conflict do nothing;
      notify pgrst, 'reload schema'`);
    const request = { method: "PATCH", body: { note: item }, headers };
    await until(async () => (await client.ask("/programs")).status === 200);
    expect((await client.ask("/programs?api_key=eq.a", request)).status).toBe(204);
    expect((await client.ask("/programs?api_key=eq.b", request)).status).toBe(422);
  });
});

describe("concurrent attempts", () => {
  test.each([
    ["one gateway", () => [client]],
    ["two gateways", () => [client, elsewhere]],
  ])("at %s make one change, and all get the same response", async (_where, gateways) => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item, seconds: 0.3 }, headers };
    const response = await Promise.all(
      Array.from({ length: 20 }, (_, n) => gateways()[n % gateways().length]!.ask("/rpc/order_slowly", request)),
    );
    expect(new Set(response.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set(["200 1"]));
    expect(response.filter((one) => !isReplay(one))).toHaveLength(1);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("use no connection while they wait", async () => {
    const { item, headers } = newOrder();
    const kept = await shop.owner.connect();
    await kept.query("begin; select from public.stock where item = 'salt' for update");
    let done = false;
    const request = { method: "POST", body: { item }, headers };
    const crowd = Promise.all(Array.from({ length: 30 }, () => client.ask("/rpc/order_behind_salt", request))).then(
      () => {
        done = true;
      },
    );
    try {
      const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
      await until(async () => (await shop.owner.query(waiting)).rowCount !== 0);
      for (let n = 0; n < 20; n++) {
        expect((await elsewhere.ask("/orders", { method: "POST", body: { item: "quick" } })).status).toBe(201);
        expect((await client.ask("/rpc/order_item", { method: "POST", body: { item: "quick" } })).status).toBe(200);
      }
      expect(done).toBe(false);
    } finally {
      await kept.query("commit");
      kept.release();
    }
    await crowd;
    expect(await shop.ordered(item)).toBe(1);
  });

  test("in an isolation level that does not see new rows make one change as well", async () => {
    for (let round = 0; round < 5; round++) {
      const { item, headers } = newOrder();
      const request = { method: "POST", body: { item }, headers };
      const response = await Promise.all(
        Array.from({ length: 12 }, (_, n) => [client, elsewhere][n % 2]!.ask("/rpc/order_strictly", request)),
      );
      expect(new Set(response.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(response[0]!.status).toBe(200);
      expect(await shop.ordered(item)).toBe(1);
    }
  });

  test("of different requests: one runs, the other is refused", async () => {
    const { item, headers } = newOrder();
    const order = (seconds: number) =>
      client.ask("/rpc/order_slowly", { method: "POST", body: { item, seconds }, headers });
    const response = await Promise.all([order(0.2), order(0.3)]);
    expect(response.map(({ status }) => status).sort()).toEqual([200, 422]);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("wait no longer than the statement timeout: 409, and later the response", async () => {
    const hasty = await serve(shop, { DB_STATEMENT_TIMEOUT_SECONDS: "1" });
    const asking = openClient(hasty.url);
    const { item, headers } = newOrder();
    const slow = { method: "POST", body: { item, seconds: 3 }, headers };
    const first = client.ask("/rpc/order_slowly", slow);
    await shop.owner.query("select pg_sleep(0.2)");
    const response = await asking.ask("/rpc/order_slowly", slow);
    expect(response).toMatchObject({ status: 409, body: { code: "IDEMPOTENCY_KEY_IN_USE" } });
    expect(response.headers["retry-after"]).toBe("1");
    const answer = await first;
    expect(answered(await asking.ask("/rpc/order_slowly", slow))).toEqual(answered(answer));
    asking.close();
    await hasty.stop();
  });

  test("after a failure of the first, the next one makes the change", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item, seconds: 1 }, headers };
    const both = [client.ask("/rpc/order_slowly", request), elsewhere.ask("/rpc/order_slowly", request)];
    await shop.owner.query("select pg_sleep(0.5)");
    await shop.owner.query(
      "select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep' and usename = 'authenticator'",
    );
    const response = await Promise.all(both);
    expect(response.map(({ status }) => status).sort()).toEqual([200, 500]);
    expect(await shop.ordered(item)).toBe(1);
  });
});

describe("a key", () => {
  test.each([
    ["nothing", ""],
    ["a space", "two words"],
    ["256 characters", "x".repeat(256)],
    ["a letter that is no ASCII", "schlüssel"],
  ])("may not be %s", async (_what, key) => {
    const { item } = newOrder();
    const response = await client.ask("/orders", {
      method: "POST",
      body: { item },
      headers: { "Idempotency-Key": key },
    });
    expect(response).toMatchObject({ status: 400, body: { code: "INVALID_IDEMPOTENCY_KEY" } });
    expect(await shop.ordered(item)).toBe(0);
  });

  test.each([
    ["one character", "~"],
    ["255 characters", "!".repeat(255)],
    ["in quotes, as the draft of the IETF has it", `"${randomUUID()}"`],
  ])("may be %s", async (_what, key) => {
    const { item } = newOrder();
    const request = { method: "POST", body: { item }, headers: { "Idempotency-Key": key } };
    await client.ask("/orders", request);
    expect(isReplay(await client.ask("/orders", request))).toBe(true);
    expect(await shop.ordered(item)).toBe(1);
  });

  test("sent twice is invalid", async () => {
    const headers = { "Idempotency-Key": ["a", "b"] };
    expect((await client.ask("/orders", { method: "POST", body: { item: "x" }, headers })).status).toBe(400);
  });

  test("can be used again after a day", async () => {
    const { item, headers } = newOrder();
    const request = { method: "POST", body: { item }, headers };
    await client.ask("/orders", request);
    const { rows } = await shop.owner.query(
      "select extract(epoch from max(expires_at) - now())::int as seconds from content_service.kept_answers",
    );
    expect(rows[0].seconds).toBeGreaterThan(86_300);
    expect(rows[0].seconds).toBeLessThanOrEqual(86_400);

    await shop.owner.query("update content_service.kept_answers set expires_at = now()");
    expect(isReplay(await client.ask("/orders", { ...request, body: { item, pieces: 2 } }))).toBe(false);
    expect(await shop.ordered(item)).toBe(2);
  });
});

test("stored responses are unreadable for readers of the table", async () => {
  const { item, headers } = newOrder();
  const request = { method: "POST", body: { item }, headers: { ...headers, Prefer: "return=representation" } };
  await client.ask("/orders", request);
  const { rows } = await shop.owner.query("select id, sealed_answer from content_service.kept_answers");
  const all = Buffer.concat(rows.flatMap(({ id, sealed_answer }) => [id, sealed_answer]));
  expect(all.length).toBeGreaterThan(100);
  for (const secret of [item, headers["Idempotency-Key"], "Content-Type"]) expect(all.includes(secret)).toBe(false);
});

test("a pre-request runs at every attempt, and may refuse one", async () => {
  await shop.owner.query(`
    create table public.banned (sub text);
    create function public.check_ban() returns void language plpgsql security definer as $$ begin
      if exists (select from public.banned where sub = current_setting('request.jwt.claims')::json ->> 'sub')
      then raise insufficient_privilege using message = 'You are banned'; end if;
    end $$;
    grant execute on function public.check_ban to anon, authenticated;
  `);
  const careful = await serve(shop, { PGRST_DB_PRE_REQUEST: "public.check_ban" });
  const asking = openClient(careful.url, { as: ALICE });
  const { item, headers } = newOrder();
  const request = { method: "POST", body: { item }, headers };
  expect((await asking.ask("/orders", request)).status).toBe(201);
  expect(isReplay(await asking.ask("/orders", request))).toBe(true);
  await shop.owner.query("insert into public.banned values ('1')");
  expect(await asking.ask("/orders", request)).toMatchObject({ status: 403, body: { message: "You are banned" } });
  asking.close();
  await careful.stop();
});

test("a page of another origin may read the header of a repeated response", async () => {
  const { headers } = await client.ask("/orders?limit=1");
  expect(headers["access-control-expose-headers"]).toContain("Idempotent-Replayed");
});

describe("a foreign database", () => {
  test("cannot store responses and reports it: 501, and nothing is changed", async () => {
    const bare = await cloneDatabase("empty");
    const service = await serve(bare);
    const asking = openClient(service.url);
    const bareOwner = await connect(bare.ownerUrl);
    await bareOwner.query("create table public.notes (note text); grant all on public.notes to anon");
    await bareOwner.query("notify pgrst, 'reload schema'");
    while ((await asking.ask("/notes")).status !== 200) await bareOwner.query("select pg_sleep(0.05)");

    const request = { method: "POST", body: { note: "x" } };
    const response = await asking.ask("/notes", { ...request, headers: newOrder().headers });
    expect(response).toMatchObject({ status: 501, body: { code: "IDEMPOTENCY_UNAVAILABLE" } });
    expect((await asking.ask("/notes")).body).toEqual([]);
    expect((await asking.ask("/notes", request)).status).toBe(201);

    // A role that does not exist is the token's fault, whatever the database lacks.
    const anonymous = await asking.ask("/notes", { ...request, headers: newOrder().headers, as: { role: "postgres" } });
    expect(anonymous.status).toBe(401);
    asking.close();
    await service.stop();
    await bareOwner.end();
    await bare.drop();
  });
});
