import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { signClaims } from "../comparison/sign-claims.ts";
import type { Traffic } from "../failover/traffic.ts";
import type { FaultySystem } from "./system.ts";

/** The functions of a service; each check tries one from end to end. */
export const PARTS = ["write", "keyed write", "GraphQL", "queue", "webhook", "change stream", "schema change"] as const;
export type Part = (typeof PARTS)[number];
type Check = (system: FaultySystem, traffic: Traffic, number: number) => Promise<boolean>;

const ATTEMPT_MS = 10_000;
const POLL_MS = 50;
const NEXT_CHANGE_MS = 1_000;
/** The number of reads of `/health`, since each response may come from another worker. */
const HEALTH_READS = 4;
const SERVICE_KEY = signClaims({ role: "service_role" });

let last = Date.now() * 1_000 + 500_000_000;

/** Tries each part once; returns the parts that fail. */
export async function brokenParts(system: FaultySystem, traffic: Traffic): Promise<Part[]> {
  const results = await Promise.all(
    PARTS.map(async (part) => {
      const works = CHECKS[part](system, traffic, ++last).catch(() => false);
      return (await Promise.race([works, sleep(ATTEMPT_MS, false)])) ? null : part;
    }),
  );
  return results.filter((part) => part !== null);
}

/** Returns the different reports of `/health`; each read has its own connection, so that all workers are asked. */
export async function readHealth({ url }: FaultySystem): Promise<readonly string[]> {
  const reports = await Promise.all(
    Array.from({ length: HEALTH_READS }, async () => {
      const options = { headers: { Connection: "close" }, signal: AbortSignal.timeout(ATTEMPT_MS) };
      try {
        const { status, reason } = (await (await fetch(`${url}/health`, options)).json()) as {
          status: string;
          reason?: string;
        };
        return reason ? `${status}: ${reason}` : status;
      } catch {
        return "no answer";
      }
    }),
  );
  return [...new Set(reports)];
}

const CHECKS: Readonly<Record<Part, Check>> = {
  write: (system, _traffic, number) => post(system, "/rest/v1/marks", { number }),
  "keyed write": (system, _traffic, number) =>
    post(system, "/rest/v1/marks", { number }, { "Idempotency-Key": randomUUID() }),
  GraphQL: (system, _traffic, number) =>
    post(system, "/graphql", {
      query: "mutation ($number: BigInt!) { createMark(input: {number: $number}) { id } }",
      variables: { number: String(number) },
    }),
  async queue(system, _traffic, number) {
    if (!(await post(system, "/rest/v1/rpc/mark", { number }, { Prefer: "respond-async" }))) return false;
    return until(async () => (await countOf(system, number)) === 1);
  },
  async webhook(system, _traffic, number) {
    if (!(await post(system, "/rest/v1/marks", { number }))) return false;
    return until(async () => system.delivered.has(number));
  },
  async "change stream"(system, traffic) {
    // The service reports a gap if it misses a change; a later change arrives.
    const written: number[] = [];
    const end = performance.now() + ATTEMPT_MS;
    while (performance.now() < end) {
      const number = ++last;
      if (!(await post(system, "/rest/v1/marks", { number, note: traffic.label }))) return false;
      written.push(number);
      const hasArrived = async () =>
        written.some((each) => traffic.subscribers.every(({ received }) => received.has(each)));
      if (await until(hasArrived, Math.min(end, performance.now() + NEXT_CHANGE_MS))) return true;
    }
    return false;
  },
  async "schema change"(system, _traffic, number) {
    const name = `seen_${number}`;
    await system.execute(
      `create view public.${name} with (security_invoker) as select 1 as one; grant select on public.${name} to service_role`,
    );
    try {
      return await until(async () => (await get(system, `/rest/v1/${name}`)).ok);
    } finally {
      await system.execute(`drop view public.${name}`);
    }
  },
};

async function countOf(system: FaultySystem, number: number): Promise<number> {
  const response = await get(system, `/rest/v1/marks?number=eq.${number}`);
  return response.ok ? ((await response.json()) as unknown[]).length : 0;
}

function get({ url }: FaultySystem, path: string): Promise<Response> {
  const headers = { apikey: SERVICE_KEY };
  return fetch(url + path, { headers, signal: AbortSignal.timeout(ATTEMPT_MS) });
}

async function post({ url }: FaultySystem, path: string, body: object, more: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { apikey: SERVICE_KEY, "Content-Type": "application/json", ...more },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ATTEMPT_MS),
  });
  const text = await response.text();
  return response.ok && !text.includes('"errors"');
}

async function until(holds: () => Promise<boolean>, end = performance.now() + ATTEMPT_MS): Promise<boolean> {
  while (performance.now() < end) {
    if (await holds()) return true;
    await sleep(POLL_MS);
  }
  return false;
}
