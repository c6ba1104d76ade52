// Benchmarks one row by key with a worker for every two cores, as `npm start` has them, and with one process, beside pgbench with
// as many clients; and the same beside many connections that are mostly idle.

import { availableParallelism } from "node:os";
import { readConfig } from "#config";
import { compare } from "./comparison/compare.ts";
import { startLoadGenerator } from "./comparison/load.ts";
import { startOurs } from "./comparison/ours.ts";
import type { MeasuredServer, ServerLauncher } from "./comparison/program.ts";
import { PGBENCH } from "./comparison/runners.ts";
import { judge, type Targets, verdict } from "./comparison/targets.ts";
import type { Work } from "./comparison/work.ts";
import { measureIdleConnections } from "./cores/idle-connections.ts";
import type { Bench } from "./measuring/kind.ts";
import { requirePgbench } from "./measuring/pgbench.ts";
import { processesOf } from "./measuring/processor-time.ts";
import { residentMebibytes } from "./measuring/resident-memory.ts";
import { SCHEMA } from "./measuring/schema.ts";
import { startScratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";
import { ONE_ROW } from "./rest/works.ts";
import { startInstalled } from "./start-installed.ts";

const [FEW, MANY] = [64, 256] as const;
const WORKS: readonly Work[] = [FEW, MANY].map((connections) => ({
  ...ONE_ROW,
  name: `one row by key, ${connections} connections`,
  connections,
  // pgbench has a Postgres session for each client, and more sessions make it slower.
  pgbenchClients: FEW,
}));
const LEAST = 0.65;
const TARGETS: Targets = { [WORKS[0]!.name]: [{ than: PGBENCH, least: LEAST }] };
const ONE_PROCESS = "one process";
/** The share of the rate that remains while many other connections are open and mostly idle. */
const LEAST_BESIDE_IDLE = 0.9;

export const bench: Bench = async (options) => {
  const { print } = options;
  const { workers } = readConfig({}).config;
  print(`cores: ${availableParallelism()} cores, ${workers} worker${workers === 1 ? "" : "s"} by default ("ours")`);
  const version = await requirePgbench().catch((error: Error) => print(`pgbench skipped: ${error.message}`));
  const launchers: readonly ServerLauncher[] = [
    {
      name: "ours",
      isInstalled: true,
      start: (scratch) => startOurs(scratch, scratch.url("authenticator"), { workers }),
    },
    {
      name: ONE_PROCESS,
      isInstalled: true,
      start: (scratch) => startOurs(scratch, scratch.url("authenticator"), { name: ONE_PROCESS }),
    },
  ];
  printPreface(options, launchers);

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA));
  const { started: servers } = opened.use(await startInstalled(launchers, scratch));
  const field = { scratch, copier: null, servers, hasPgbench: version !== undefined };
  const outcomes = await compare({ works: WORKS, ...field }, options);

  const memory: Record<string, readonly number[]> = {};
  for (const server of servers) {
    memory[server.name] = await residentOf(server);
    const each = memory[server.name]!.map((mebibytes) => mebibytes.toFixed(0)).join(", ");
    print(
      `  resident memory of ${server.name}${server.name === ONE_PROCESS ? "" : ", the primary first"}: ${each} MiB`,
    );
  }

  using generator = startLoadGenerator();
  const idle = await measureIdleConnections(servers[0]!, WORKS[0]!, { scratch, generator }, options);
  const { without, with: beside } = idle.rates;
  print(`  ${FEW} connections: ${without.toFixed(0)}/s, beside ${idle.connections} idle ones ${beside.toFixed(0)}/s`);
  if (idle.processorShare !== null)
    print(`  processor time per request beside them: ${idle.processorShare.toFixed(2)} times`);
  if (idle.kibibytesEach !== null) print(`  memory of an idle connection: ${idle.kibibytesEach.toFixed(1)} KiB`);

  const [few, many] = outcomes.map(({ servers: { ours } }) => ours!.rate!) as [number, number];
  const share = many / few;
  print("\n  targets");
  for (const line of judge(outcomes, TARGETS)) print(line);
  print(verdict(`${MANY} connections: ${share.toFixed(2)} times the rate with ${FEW}`, share >= 1, "1"));
  const idleName = `beside ${idle.connections} idle connections: ${idle.share.toFixed(2)} times the rate without`;
  print(verdict(idleName, idle.share >= LEAST_BESIDE_IDLE, String(LEAST_BESIDE_IDLE)));
  return { version, workers, outcomes, memory, idle };
};

async function residentOf({ pid }: MeasuredServer): Promise<number[]> {
  const resident = await Promise.all((await processesOf(pid)).map(residentMebibytes));
  return resident.filter((mebibytes) => mebibytes !== null);
}
