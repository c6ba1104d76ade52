import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestOf } from "../../accounts/random-secrets.ts";
import { makeTokenIssuer, makeTokenPairs, type TokenPair, type TokenPairs } from "../../accounts/token-pairs.ts";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { ApiError } from "../../runtime/errors.ts";
import { useFixture } from "../fixture.ts";
import { propertyRuns } from "../property-runs.ts";
import { CONFIG, from, KEYS, lender, newPerson, openAccounts } from "./open-accounts.ts";

let pools: readonly pg.Pool[];
let gateways: readonly TokenPairs[];

const opened = useFixture(openAccounts);
beforeAll(async () => {
  pools = [newPool(), newPool()];
  const issuer = makeTokenIssuer({ ...CONFIG, keys: KEYS });
  gateways = pools.map((pool) =>
    makeTokenPairs({ asOwner: lender(pool), issuer, kind: issuer.pairs, hasReuseWindow: false }),
  );
});
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

function newPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString: opened.database.ownerUrl, application_name: "gateway", max: 4 });
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** A family of somebody's, without the password that begins one. */
async function newFamily(): Promise<{ userId: string; pair: TokenPair }> {
  const { userId } = await newPersonOfAll();
  const pair = await inOwnerTransaction(opened.asOwner, (client) =>
    opened.accounts.tokens.open(client, userId, from()),
  );
  return { userId, pair };
}

/** Tests here do not look at hashing: one person has all families. */
let person: Promise<{ userId: string }> | null = null;
function newPersonOfAll(): Promise<{ userId: string }> {
  person ??= newPerson(opened);
  return person;
}

async function loseConnection(which: number): Promise<void> {
  await opened.owner.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'gateway'
      order by state = 'idle', pid offset $1 % 4 limit 1`,
    [which],
  );
}

/** Returns the answer of a gateway; null if the connection was lost, perhaps after the token was replaced. */
async function ask(gateway: number, token: string, retryKey: string | null): Promise<TokenPair | "refused" | null> {
  try {
    return await gateways[gateway]!.refresh(token, from(), { retryKey });
  } catch (error) {
    if (error instanceof ApiError && error.kind === "unauthenticated") return "refused";
    return null;
  }
}

/** Asks again as often as a connection is found to be lost. */
async function answerTo(token: string): Promise<Awaited<ReturnType<typeof ask>>> {
  for (;;) {
    const answer = await ask(0, token, "one");
    if (answer !== null) return answer;
  }
}

/** The tokens of the family that could still be exchanged. */
async function usable(token: string): Promise<Buffer[]> {
  const { rows } = await opened.owner.query<{ token_hash: Buffer }>(
    `select token_hash from auth.refresh_tokens
      where rotated_at is null and revoked_at is null
        and family_id = (select family_id from auth.refresh_tokens where token_hash = $1)`,
    [digestOf(token)],
  );
  return rows.map(({ token_hash }) => token_hash);
}

test("an honest client that retries with an Idempotency-Key is never signed out, whatever responses are lost", async () => {
  const step = fc.record({
    /** The time at which each of its tabs asks, and the gateway. */
    tabs: fc.array(fc.tuple(fc.nat(15), fc.nat(1)), { minLength: 1, maxLength: 4 }),
    accidents: fc.array(fc.tuple(fc.nat(15), fc.nat(3)), { maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      let { pair } = await newFamily();
      for (const { tabs, accidents } of steps) {
        const key = randomUUID();
        const untilAnswered = async (at: number, gateway: number) => {
          await sleep(at);
          for (let turn = gateway; ; turn = 1 - turn) {
            const answer = await ask(turn, pair.refreshToken, key);
            if (answer) return answer;
          }
        };
        const [answers] = await Promise.all([
          Promise.all(tabs.map(([at, gateway]) => untilAnswered(at, gateway))),
          Promise.all(accidents.map(([at, which]) => sleep(at).then(() => loseConnection(which)))),
        ]);
        const distinct = [...new Set(answers.map((answer) => JSON.stringify(answer)))];
        expect(distinct).toHaveLength(1);
        expect(distinct[0]).not.toBe('"refused"');
        pair = JSON.parse(distinct[0]!);
        expect(await usable(pair.refreshToken)).toEqual([digestOf(pair.refreshToken)]);
      }
    }),
    { numRuns: propertyRuns(40) },
  );
});

test("for any interleaving of uses, replays, logouts and lost connections, a token is exchanged once and a refusal is final", async () => {
  const event = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("refresh" as const),
        at: fc.nat(60),
        gateway: fc.nat(1),
        /** The age in tokens; mostly the newest that is known by then. */
        age: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(3)),
        retryKey: fc.constantFrom(null, "one", "two"),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("logout" as const), at: fc.nat(120), gateway: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("accident" as const), at: fc.nat(60), which: fc.nat(3) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 3, maxLength: 20 }), async (events) => {
      const { userId, pair } = await newFamily();
      const known = [pair.refreshToken];
      const successors = new Map<string, Set<string>>();
      let hasEnded = false;

      const act = async (story: (typeof events)[number]) => {
        await sleep(story.at);
        if (story.kind === "accident") return loseConnection(story.which);
        if (story.kind === "logout") {
          await gateways[story.gateway]!.revoke(userId, from()).then(
            () => {
              hasEnded = true;
            },
            () => {},
          );
          return;
        }
        const token = known.at(-1 - story.age) ?? known[0]!;
        const answer = await ask(story.gateway, token, story.retryKey);
        if (answer === "refused") hasEnded = true;
        if (answer === null || answer === "refused") return;
        successors.set(token, (successors.get(token) ?? new Set()).add(answer.refreshToken));
        if (!known.includes(answer.refreshToken)) known.push(answer.refreshToken);
      };
      await Promise.all(events.map(act));

      for (const given of successors.values()) expect(given.size).toBe(1);
      const left = await usable(pair.refreshToken);
      expect(left.length).toBeLessThanOrEqual(1);
      if (hasEnded) {
        expect(left).toEqual([]);
        for (const token of known) expect(await answerTo(token)).toBe("refused");
      }
    }),
    { numRuns: propertyRuns(60) },
  );
});
