import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { LoadGenerator } from "../comparison/load.ts";
import { sampleOf } from "../comparison/measure.ts";
import type { MeasuredServer } from "../comparison/program.ts";
import { TOKENS } from "../comparison/tokens.ts";
import { requestOf, type Work } from "../comparison/work.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { median } from "../measuring/median.ts";
import { processesOf } from "../measuring/processor-time.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import type { Scratch } from "../measuring/scratch.ts";

const CONNECTIONS = 5_000;

export type IdleClients = { readonly port: number; readonly request: string; readonly connections: number };

/** The results of the work with and without this many open and rarely used connections. */
type IdleCost = {
  readonly connections: number;
  /** The rate with the connections, divided by the rate without them. */
  readonly share: number;
  readonly rates: { readonly without: number; readonly with: number };
  /** The service's processor time per request with the connections, divided by that without: for busy machines. Null without /proc. */
  readonly processorShare: number | null;
  /** The additional memory of all processes of the service per connection; null without /proc. */
  readonly kibibytesEach: number | null;
};

type LoadTools = { readonly scratch: Scratch; readonly generator: LoadGenerator };

/** Compares within each round, because other programs also use the machine. */
export async function measureIdleConnections(
  server: MeasuredServer,
  work: Work,
  tools: LoadTools,
  { rounds, seconds }: BenchOptions,
): Promise<IdleCost> {
  const sample = () => sampleOf(server, work, seconds, tools);
  await sample();
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const without = await sample();
    const before = await residentOf(server);
    using _clients = await openIdleConnections(server, work);
    const grown = (await residentOf(server)) - before;
    results.push({ without, with: await sample(), grown });
  }
  const kibibytesEach = (median(results.map(({ grown }) => grown)) * 1_024) / CONNECTIONS;
  return {
    connections: CONNECTIONS,
    share: median(results.map((result) => result.with.rate / result.without.rate)),
    rates: {
      without: median(results.map(({ without }) => without.rate)),
      with: median(results.map((result) => result.with.rate)),
    },
    processorShare: finiteOrNull(
      median(
        results.map((result) => (result.with.serverTime ?? Number.NaN) / (result.without.serverTime ?? Number.NaN)),
      ),
    ),
    kibibytesEach: finiteOrNull(kibibytesEach),
  };
}

function finiteOrNull(number: number): number | null {
  return Number.isFinite(number) ? number : null;
}

async function residentOf({ pid }: MeasuredServer): Promise<number> {
  const resident = await Promise.all((await processesOf(pid)).map(residentMebibytes));
  return resident.reduce<number>((sum, mebibytes) => sum + (mebibytes ?? Number.NaN), 0);
}

async function openIdleConnections(server: MeasuredServer, work: Work): Promise<Disposable> {
  const child = fork(join(import.meta.dirname, "idle-client.ts"));
  const { port, request } = requestOf(work, server);
  const [before, afterValue, rest] = request;
  const clients: IdleClients = {
    port,
    request: `${before}0${afterValue}${TOKENS.cached[0]}${rest}`,
    connections: CONNECTIONS,
  };
  child.send(clients);
  const [outcome] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (outcome !== "open") throw new Error(`${CONNECTIONS} connections cannot be opened; is \`ulimit -n\` too low?`);
  return { [Symbol.dispose]: () => void child.kill() };
}
