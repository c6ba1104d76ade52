// Runs requests of all interfaces as three tenants on the server of CITUS_URL, or on a Postgres of its own, with the caller's settings set
// by statements. A result is compared with the rows that the tenant has.

import { DISTRIBUTED_JOURNEYS, JOURNEYS, type Journey } from "./citus/journeys.ts";
import { createJourneyTables, JOURNEY_SCHEMA, LOGIN, TENANTS } from "./citus/schema.ts";
import { startOurs } from "./comparison/ours.ts";
import { signClaims } from "./comparison/sign-claims.ts";
import type { Bench } from "./measuring/kind.ts";
import { startScratch } from "./measuring/scratch.ts";

type JourneyResult = {
  readonly journey: string;
  readonly tenant: number;
  readonly isRight: boolean;
  readonly result: string;
};

export const bench: Bench = async ({ print }) => {
  const given = process.env.CITUS_URL;
  await using scratch = given ? null : await startScratch("select 1");
  const ownerUrl = given ?? scratch!.url("postgres");
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
    const wrong = results.filter(({ isRight }) => !isRight);
    print(`  ${results.length - wrong.length} of ${results.length} requests are right`);
    return { isDistributed, results, isMissed: wrong.length > 0 };
  } finally {
    await server.stop();
  }
};

function urlOfLogin(given: string): string {
  const url = new URL(given);
  url.username = LOGIN.name;
  url.password = LOGIN.password;
  return url.href;
}

async function runJourney(base: URL, journey: Journey, tenant: number): Promise<JourneyResult> {
  const { method = "GET", path, body, prefer } = journey.call(tenant);
  const response = await fetch(new URL(path, base), {
    method,
    headers: {
      authorization: `Bearer ${signClaims({ role: "authenticated", tenant })}`,
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
  if (journey.status !== undefined) return resultOf(response.status === journey.status, refusal);
  if (!response.ok) return resultOf(false, refusal);
  const parsed = JSON.parse(text);
  const rows = journey.rowsIn ? journey.rowsIn(parsed) : parsed;
  if (!Array.isArray(rows)) return resultOf(false, refusal);
  if (namesAnotherTenant(rows, tenant)) return resultOf(false, `rows of another tenant: ${refusal}`);
  return resultOf(rows.length === journey.rows, `${rows.length} rows, not ${journey.rows}`);
}

function namesAnotherTenant(value: unknown, tenant: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, member]) =>
    key === "tenant_id" || key === "tenantId" ? String(member) !== String(tenant) : namesAnotherTenant(member, tenant),
  );
}
