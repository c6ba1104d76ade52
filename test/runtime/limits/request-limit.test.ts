import pg from "pg";
import { afterAll, describe, expect, test, vi } from "vitest";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { RequestLimit } from "../../../postgres/database/rate-limits.ts";
import type { PeerWorkers } from "../../../runtime/concurrency/peer-workers.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { connectWorkers } from "../../peer-workers.ts";
import { until } from "../../until.ts";

const LIMIT = 100;
const log = { warn: () => {} };

let statements = 0;
const asOwner: AsOwner = async (work) => {
  statements++;
  const client = await pool.connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
};

const database = useDatabase();
const pool = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 4 }));

const limits: RequestLimit[] = [];
type LimitOptions = { windowSeconds?: number; limit?: number; asOwner?: AsOwner; peers?: PeerWorkers };
function open(options: LimitOptions = {}): RequestLimit {
  const limit = new RequestLimit({ limit: LIMIT, asOwner, log, ...options });
  limits.push(limit);
  return limit;
}
afterAll(() => {
  for (const limit of limits) limit.close();
});

function admittedOf(limit: RequestLimit, caller: string, requests: number): number {
  let admitted = 0;
  for (let sent = 0; sent < requests; sent++) if (limit.count(caller).isAdmitted) admitted++;
  return admitted;
}

async function resultOf(caller: string): Promise<number> {
  const { rows } = await pool.query("select points from content_service.rate_limits where key = $1", [caller]);
  return rows[0]?.points ?? 0;
}

describe("a request limit", () => {
  test("admits as many requests as the limit and counts down", async () => {
    const limit = open({ limit: 3 });
    const result = [limit.count("alice"), limit.count("alice"), limit.count("alice")];
    expect(result.map(({ isAdmitted, remaining }) => [isAdmitted, remaining])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
    ]);
    const refused = limit.count("alice");
    expect(refused).toMatchObject({ isAdmitted: false, limit: 3, remaining: 0 });
    expect(refused.endsAt).toBeGreaterThan(Date.now());
    expect(limit.count("bob").isAdmitted).toBe(true);
  });

  test("starts a new window when the clock was set back", () => {
    const limit = open({ limit: 1 });
    expect(admittedOf(limit, "set-back", 2)).toBe(1);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    try {
      expect(admittedOf(limit, "set-back", 2)).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test("admits requests again when the window has ended", async () => {
    const limit = open({ limit: 1, windowSeconds: 1 });
    expect(admittedOf(limit, "carol", 2)).toBe(1);
    await vi.waitFor(async () => expect(limit.count("carol").isAdmitted).toBe(true), { timeout: 10_000 });
  });

  test("applies to all gateways together, but for requests between two synchronizations", async () => {
    const gateways = [open(), open(), open()];
    let admitted = 0;
    for (let round = 0; round < 8; round++) {
      for (const gateway of gateways) admitted += admittedOf(gateway, "dora", 10);
      // Ten requests are more than a twentieth of the limit, so each of them tells at once.
      await vi.waitFor(async () => expect(await resultOf("dora")).toBe(admitted), { timeout: 10_000 });
    }
    expect(admitted).toBeGreaterThanOrEqual(LIMIT);
    expect(admitted).toBeLessThanOrEqual(LIMIT * 1.5);
    // Without the others each would have admitted all of it.
    expect(admitted).toBeLessThan(gateways.length * LIMIT);
  });

  test("runs no SQL statement per request", async () => {
    const limit = open({ limit: 1_000_000 });
    const before = statements;
    admittedOf(limit, "erin", 5_000);
    await vi.waitFor(async () => expect(await resultOf("erin")).toBe(5_000), { timeout: 10_000 });
    expect(statements - before).toBeLessThan(10);
  });

  test("is counted per gateway if the database has no function to count", async () => {
    const limit = open({ limit: 20, asOwner: () => Promise.reject(new Error("away")) });
    expect(admittedOf(limit, "frank", 60)).toBe(20);
  });

  test("removes windows that have ended", async () => {
    await pool.query("insert into content_service.rate_limits values ('long ago', 5, 1)");
    const limit = open();
    admittedOf(limit, "gina", 10);
    await vi.waitFor(async () => expect(await resultOf("gina")).toBeGreaterThan(0), { timeout: 10_000 });
    expect(await resultOf("long ago")).toBe(0);
  });
});

describe("the limits of two workers without counts in Postgres", () => {
  const unavailable: AsOwner = async () => {
    throw new Error("Postgres does not answer.");
  };

  test("count each other's requests", async () => {
    const workers = connectWorkers();
    const [one, other] = [workers.join(), workers.join()].map((peers) => open({ asOwner: unavailable, peers }));
    let published = 0;
    workers.join().subscribe("requests", (counts) => {
      for (const [, points] of counts as [string, number][]) published += points;
    });
    expect(admittedOf(one!, "erin", LIMIT / 2)).toBe(LIMIT / 2);
    await until(() => published === LIMIT / 2);
    expect(admittedOf(other!, "erin", LIMIT)).toBe(LIMIT / 2);
    await until(() => published === LIMIT);
    expect(admittedOf(one!, "erin", LIMIT)).toBe(0);
    expect(other!.count("frank").isAdmitted).toBe(true);
  });

  test("count alone without the other", () => {
    const [one, other] = [open({ asOwner: unavailable }), open({ asOwner: unavailable })];
    expect([admittedOf(one, "grace", 2 * LIMIT), admittedOf(other, "grace", 2 * LIMIT)]).toEqual([LIMIT, LIMIT]);
  });
});
