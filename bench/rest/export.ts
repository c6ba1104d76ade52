import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { OURS } from "../comparison/ours.ts";
import type { MeasuredServer } from "../comparison/program.ts";
import { API_KEY, TOKENS } from "../comparison/tokens.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import { CALLER } from "../measuring/schema.ts";
import { POSTGREST } from "./servers.ts";

export const EXPORTED_ROWS = 1_000_000;
const LOOK_EVERY_MS = 20;

export type Export = {
  readonly megabytes: number;
  readonly firstByteMilliseconds: number;
  readonly seconds: number;
  /** The maximum growth of the server's memory during the export; null without /proc. */
  readonly grownMebibytes: number | null;
};

export const READINGS = `
  create table readings (
    id bigint primary key,
    owner_id uuid not null default auth.uid(),
    sensor text not null,
    value numeric not null,
    measured_at timestamptz not null
  );
  insert into readings
    select n, '${CALLER}', 'sensor ' || n % 100, round((n % 9973) / 7.0, 3), timestamptz '2026-01-01' + n * interval '1 s'
    from generate_series(1, ${EXPORTED_ROWS}) n;
  alter table readings enable row level security;
  create policy own on readings using (owner_id = (select auth.uid()));
  grant select on readings to authenticated;
`;

/** The servers that can export this much; the others would hold all of it in memory several times. */
export const EXPORTERS: readonly string[] = [OURS, POSTGREST];

/** Exports all rows of a caller in one response, read as fast as they arrive. */
export async function exportAll({ base, pid }: MeasuredServer, table = "readings"): Promise<Export> {
  const before = await residentMebibytes(pid);
  let most = before;
  const look = setInterval(async () => {
    const now = await residentMebibytes(pid);
    if (now !== null && most !== null) most = Math.max(most, now);
  }, LOOK_EVERY_MS);
  const start = performance.now();
  const headers = { apikey: API_KEY, Authorization: `Bearer ${TOKENS.cached[0]}` };
  const [response] = (await once(get(new URL(`${table}?select=*`, base), { headers }), "response")) as [
    IncomingMessage,
  ];
  let bytes = 0;
  let firstByteMilliseconds = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (bytes === 0) firstByteMilliseconds = performance.now() - start;
    bytes += chunk.length;
  }
  const seconds = (performance.now() - start) / 1_000;
  clearInterval(look);
  if (response.statusCode !== 200) throw new Error(`The export was answered ${response.statusCode}`);
  const grownMebibytes = before === null || most === null ? null : most - before;
  return { megabytes: bytes / 1e6, firstByteMilliseconds, seconds, grownMebibytes };
}

export function describeExport(
  name: string,
  { megabytes, firstByteMilliseconds, seconds, grownMebibytes }: Export,
): string {
  const grown = grownMebibytes === null ? "" : `, memory +${grownMebibytes.toFixed(0)} MiB`;
  const told = `first byte ${firstByteMilliseconds.toFixed(0)} ms, all ${megabytes.toFixed(0)} MB in ${seconds.toFixed(1)} s`;
  return `    ${name.padEnd(22)} ${told}${grown}`;
}
