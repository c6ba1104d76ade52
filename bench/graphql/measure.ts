import type { LoadGenerator } from "../comparison/load.ts";
import { sampleOfLoad } from "../comparison/measure.ts";
import type { Round } from "../comparison/report.ts";
import { type Runners, roundsOf } from "../comparison/runners.ts";
import type { Scratch } from "../scratch.ts";
import type { Server } from "./servers.ts";
import { loadOf, type Work } from "./works.ts";

type Field = { readonly scratch: Scratch; readonly generator: LoadGenerator; readonly servers: readonly Server[] };

const WARM_UP_REQUESTS = 3_000;
const WARM_UP_SECONDS = 0.5;

/** All of them, once they are warm. */
export async function byTurns(work: Work, rounds: number, seconds: number, field: Field): Promise<Round[]> {
  for (const server of field.servers) await warmUp(work, server, field.generator);
  const runners: Runners = new Map(
    field.servers.map((server) => [
      server.name,
      (seconds: number) => sampleOfLoad(server.pid, loadOf(work, server, seconds), field),
    ]),
  );
  return roundsOf(runners, rounds, seconds);
}

/** Programs that compile themselves while they run are faster afterwards: after so many requests, not after so long. */
async function warmUp(work: Work, server: Server, generator: LoadGenerator): Promise<void> {
  for (let asked = 0; asked < WARM_UP_REQUESTS; ) {
    asked += (await generator.run(loadOf(work, server, WARM_UP_SECONDS))).requests;
  }
}
