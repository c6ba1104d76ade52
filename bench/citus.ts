// Runs requests of all interfaces as three tenants on the server of CITUS_URL, or on a Postgres of its own, with the caller's settings set
// by statements. A result is compared with the rows that the tenant has. `--only migrate` applies our migrations, and `--only migrate --only
// journeys` both: the policies then call our functions.

import { DISTRIBUTED_JOURNEYS, JOURNEYS, type Journey } from "./citus/journeys.ts";
import { migrateCoordinator } from "./citus/migrate.ts";
import { createJourneyTables, JOURNEY_SCHEMA, LOGIN, TENANTS } from "./citus/schema.ts";
import { startOurs } from "./comparison/ours.ts";
import { signClaims } from "./comparison/sign-claims.ts";
import type { Bench } from "./measuring/kind.ts";
import { startScratch } from "./measuring/scratch.ts";
import { subscribe } from "./realtime/subscriber.ts";

type JourneyResult = {
  readonly journey: string;
  readonly tenant: number;
  readonly isRight: boolean;
  readonly result: string;
};

export const bench: Bench = async ({ print, only }) => {
  const given = process.env.CITUS_URL;
  await using scratch = given ? null : await startScratch("select 1");
  const ownerUrl = given ?? scratch!.url("postgres");
  if (only.includes("migrate")) {
    const missing = await migrateCoordinator(ownerUrl);
    for (const node of missing ?? []) print(`  migrate: functions or roles are missing on ${node}`);
    if (missing === null) print("  migrate: the migrations are applied; the server has no Citus, so no node was asked");
    else if (missing.length === 0) print("  migrate: all nodes have the functions and roles");
    const isMissed = missing !== null && missing.length > 0;
    if (isMissed || !only.includes("journeys")) return { missing, isMissed };
  }
  const isDistributed = await createJourneyTables(ownerUrl);
  print(
    `citus: ${isDistributed ? "a database with the extension citus" : "Postgres without Citus"}, ${TENANTS.length} tenants`,
  );
  const loginUrl = given ? urlOfLogin(given) : scratch!.url(LOGIN.name);
  const env = {
    BASE_SCHEMA: "none",
    PGRST_DB_SCHEMAS: JOURNEY_SCHEMA,
    REST_REQUIRE_APIKEY: "false",
    CALLER_SETTINGS: "statements",
    PGRST_DB_AGGREGATES_ENABLED: "true",
  };
  const server = await startOurs({ url: () => ownerUrl }, loginUrl, { env });
  try {
    const results: JourneyResult[] = [];
    for (const journey of isDistributed ? [...JOURNEYS, ...DISTRIBUTED_JOURNEYS] : JOURNEYS) {
      const own: JourneyResult[] = [];
      for (const tenant of TENANTS) own.push(await runJourney(server.base, journey, tenant));
      const wrong = own.find(({ isRight }) => !isRight);
      print(`  ${journey.name.padEnd(32)} ${wrong ? `tenant ${wrong.tenant}: ${wrong.result}` : "right"}`);
      results.push(...own);
    }
    if (isDistributed) {
      const own = await trySubscription(server.base, TENANTS[0]);
      print(`  ${own.journey.padEnd(32)} ${own.isRight ? "right" : own.result}`);
      results.push(own);
    }
    const wrong = results.filter(({ isRight }) => !isRight);
    print(`  ${results.length - wrong.length} of ${results.length} requests are right`);
    return { isDistributed, results, isMissed: wrong.length > 0 };
  } finally {
    await server.stop();
  }
};

/** Right if the service refuses the subscription: changes of the table would never arrive. */
async function trySubscription(base: URL, tenant: number): Promise<JourneyResult> {
  const subscription = subscribe(base, signClaims(claimsOf(tenant)), { schema: JOURNEY_SCHEMA, table: "orders" });
  const result = await subscription.then(
    (socket) => {
      socket.terminate();
      return "the subscription is accepted";
    },
    (error: Error) => error.message,
  );
  const isRight = result.includes("Unable to subscribe to changes");
  return { journey: "subscription to row changes", tenant, isRight, result };
}

function claimsOf(tenant: number) {
  return { role: "authenticated", tenant };
}

function urlOfLogin(given: string): string {
  const url = new URL(given);
  url.username = LOGIN.name;
  url.password = LOGIN.password;
  return url.href;
}

async function runJourney(base: URL, journey: Journey, tenant: number): Promise<JourneyResult> {
  const { method = "GET", path, body, prefer, isAnonymous } = journey.call(tenant);
  const response = await fetch(new URL(path, base), {
    method,
    headers: {
      ...(!isAnonymous && { authorization: `Bearer ${signClaims(claimsOf(tenant))}` }),
      "content-type": "application/json",
      ...(journey.accept && { accept: journey.accept }),
      ...(prefer && { prefer }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (isStream) await response.body?.cancel();
  const text = isStream ? "a stream" : await response.text();
  const resultOf = (isRight: boolean, result: string) => ({ journey: journey.name, tenant, isRight, result });
  const refusal = `${response.status} ${text.slice(0, 300)}`;
  if (/_\d{6}/.test(text)) return resultOf(false, `names a shard: ${refusal}`);
  const { status, includes = "", count } = journey;
  if (status !== undefined) return resultOf(response.status === status && text.includes(includes), refusal);
  if (!response.ok) return resultOf(false, refusal);
  const parsed = JSON.parse(text);
  const rows = journey.rowsIn ? journey.rowsIn(parsed) : parsed;
  if (!Array.isArray(rows)) return resultOf(false, refusal);
  if (namesAnotherTenant(rows, tenant)) return resultOf(false, `rows of another tenant: ${refusal}`);
  if (rows.length !== journey.rows) return resultOf(false, `${rows.length} rows, not ${journey.rows}`);
  if (!text.includes(includes)) return resultOf(false, `without ${includes}: ${refusal}`);
  const range = response.headers.get("content-range");
  return resultOf(
    count === undefined || range?.endsWith(`/${count}`) === true,
    `the range ${range}, not of ${count} rows`,
  );
}

function namesAnotherTenant(value: unknown, tenant: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, member]) =>
    key === "tenant_id" || key === "tenantId" ? String(member) !== String(tenant) : namesAnotherTenant(member, tenant),
  );
}
