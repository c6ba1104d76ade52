import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { digestOf } from "../../../accounts/random-secrets.ts";
import { makeTokenIssuer, makeTokenPairs, type TokenPair } from "../../../accounts/token-pairs.ts";
import { inOwnerTransaction } from "../../../postgres/database/owner-pool.ts";
import { CONFIG, from, lender } from "../../accounts/open-accounts.ts";
import { useFixture } from "../../fixture.ts";
import { startGateway } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { cookieOf, type Gateways, newPerson, openGateways, PASSWORD } from "./gateways.ts";

const gateways = useFixture(openGateways);

const at = (path: string) => `${gateways.one.url}${path}`;
const post: Gateways["post"] = (...sent) => gateways.post(...sent);
const refresh = (refreshToken: string, key?: string) =>
  post(at("/auth/refresh"), { refreshToken }, key === undefined ? {} : { headers: { "Idempotency-Key": key } });

/** The answer, or null when it never came. */
const orNothing = <T>(answer: Promise<T>): Promise<T | null> => answer.catch(() => null);

async function usable(token: string): Promise<number> {
  const { rowCount } = await gateways.owner.query(
    `select from auth.refresh_tokens where rotated_at is null and revoked_at is null
      and family_id = (select family_id from auth.refresh_tokens where token_hash = $1)`,
    [digestOf(token)],
  );
  return rowCount!;
}

/** Begins a family without a password: this is no test of hashing. */
async function newFamily(userId: string): Promise<TokenPair> {
  const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
  const asOwner = lender(gateways.owner);
  const issuer = makeTokenIssuer({ ...CONFIG, keys });
  const tokens = makeTokenPairs({ asOwner, issuer, kind: issuer.pairs, hasReuseWindow: false });
  return inOwnerTransaction(asOwner, (client) => tokens.open(client, userId, from()));
}

/** Moments from before the first of a crowd of answers to after the last. */
const MOMENTS_MS = [3, 15, 40];
const CLIENTS = 8;

test("after a gateway is killed at any moment, one refresh token of a family is valid and its client stays signed in", async () => {
  const { email, userId } = await newPerson(gateways);
  const credentials = { username: email, password: PASSWORD };
  let lost = 0;
  for (const moment of MOMENTS_MS) {
    const doomed = await startGateway(gateways.database);
    const pairs = await Promise.all(Array.from({ length: CLIENTS }, () => newFamily(String(userId))));
    const request = pairs.map(({ refreshToken }) => {
      const key = randomUUID();
      const headers = { "Idempotency-Key": key };
      const answer = orNothing(post(`${doomed.url}/auth/refresh`, { refreshToken }, { headers }));
      return { old: refreshToken, key, answer };
    });
    const login = orNothing(post(`${doomed.url}/api/auth/login`, credentials));
    await sleep(moment);
    await doomed.kill();

    for (const { old, key, answer } of request) {
      const result = await answer;
      if (result === null) lost++;
      expect(await usable(old)).toBe(1);
      const { status, body } = result ?? (await refresh(old, key));
      expect(status).toBe(200);
      expect(await usable(old)).toBe(1);
      const next = await refresh(body.refreshToken);
      expect(next.status).toBe(200);
      // The old token counts as stolen when it is used once more, and the new one no longer signs anybody in.
      expect((await refresh(old)).status).toBe(401);
      expect((await refresh(next.body.refreshToken)).status).toBe(401);
      expect(await usable(old)).toBe(0);
    }

    const session = await login;
    const sessions = await gateways.owner.query("select from auth.sessions");
    expect(sessions.rowCount).toBeLessThanOrEqual(1);
    if (session?.status === 200) {
      const me = await gateways.get(at("/api/auth/me"), { headers: { Cookie: cookieOf(session)! } });
      expect(me.status).toBe(200);
    }
    expect((await post(at("/api/auth/login"), credentials)).status).toBe(200);
  }
  // Else the gateways were killed when all was over.
  expect(lost).toBeGreaterThan(0);
});
