// Benchmarks a PATCH that gives 1,000 rows their own values, beside a handwritten UPDATE.

import { Agent, request } from "node:http";
import pg from "pg";
import type { MeasuredServer } from "../comparison/program.ts";
import { verdict } from "../comparison/targets.ts";
import { API_KEY, TOKENS } from "../comparison/tokens.ts";
import { median } from "../measuring/median.ts";
import { CALLER, ITEMS, OWNERS } from "../measuring/schema.ts";
import type { Scratch } from "../measuring/scratch.ts";

const UPDATED_ROWS = ITEMS / OWNERS;
const LEAST = 0.6;

type UpdateByKey = { readonly ratio: number; readonly rowsPerSecond: number };
type RunUpdate = (n: number) => Promise<unknown>;

/** Measures both in turn, so that both update the same table. */
export async function measureUpdatesByKey(
  scratch: Scratch,
  server: MeasuredServer,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<UpdateByKey> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const client = new pg.Client({ connectionString: scratch.url("authenticator") });
  await client.connect();
  try {
    await client.query(
      "select set_config('role', 'authenticated', false), set_config('request.jwt.claims', $1, false)",
      [JSON.stringify({ sub: CALLER, role: "authenticated" })],
    );
    const runners: readonly RunUpdate[] = [(n) => patch(agent, server, n), (n) => client.query(updateText(n))];
    for (const run of runners) await updatesPerSecond(run, seconds);
    const rates: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      rates.push([await updatesPerSecond(runners[0]!, seconds), await updatesPerSecond(runners[1]!, seconds)]);
    }
    return {
      ratio: median(rates.map(([patches, updates]) => patches! / updates!)),
      rowsPerSecond: median(rates.map(([patches]) => patches! * UPDATED_ROWS)),
    };
  } finally {
    agent.destroy();
    await client.end();
  }
}

export function judgeUpdatesByKey({ ratio, rowsPerSecond }: UpdateByKey): string {
  const rate = `${Math.round(rowsPerSecond).toLocaleString("en")} rows/s`;
  const what = `update ${UPDATED_ROWS.toLocaleString("en")} rows by key: ${rate}, ${ratio.toFixed(2)} times UPDATE … FROM (VALUES …)`;
  return verdict(what, ratio >= LEAST, String(LEAST));
}

async function updatesPerSecond(run: RunUpdate, seconds: number): Promise<number> {
  const start = performance.now();
  let count = 0;
  for (; performance.now() < start + 1_000 * seconds; count++) await run(count);
  return (1_000 * count) / (performance.now() - start);
}

const rowsOf = (n: number) =>
  Array.from({ length: UPDATED_ROWS }, (_, index) => ({ id: index * OWNERS, title: `Title ${index} of ${n}` }));

function updateText(n: number): string {
  const values = rowsOf(n).map(({ id, title }) => `(${id}, '${title}')`);
  return `update items set title = v.title from (values ${values.join(", ")}) v (id, title) where items.id = v.id`;
}

function patch(agent: Agent, { base }: MeasuredServer, n: number): Promise<void> {
  const body = JSON.stringify(rowsOf(n));
  const headers = {
    apikey: API_KEY,
    Authorization: `Bearer ${TOKENS.cached[0]}`,
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    Prefer: "return=minimal",
  };
  return new Promise((resolve, reject) => {
    const sent = request(new URL("items", base), { agent, method: "PATCH", headers }, (response) => {
      response.resume();
      response.on("end", () => {
        response.statusCode === 204 ? resolve() : reject(new Error(`The update was answered ${response.statusCode}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
