import type { LoadGenerator } from "../rest/load.ts";
import { type Sample, sampleOfLoad } from "../rest/measure.ts";
import type { Round } from "../rest/report.ts";
import type { Scratch } from "../scratch.ts";
import type { Server } from "./contestants.ts";
import { loadOf, type Work } from "./works.ts";

type Field = { readonly scratch: Scratch; readonly generator: LoadGenerator; readonly servers: readonly Server[] };

const WARM_UP_REQUESTS = 3_000;
const WARM_UP_SECONDS = 0.5;

/** Whatever else happens on the machine meets all of them. */
export async function byTurns(work: Work, rounds: number, seconds: number, field: Field): Promise<Round[]> {
  for (const server of field.servers) await warmUp(work, server, field.generator);
  const round = async (): Promise<Round> => {
    const samples = new Map<string, Sample>();
    for (const server of field.servers) {
      samples.set(server.name, await sampleOfLoad(server.pid, loadOf(work, server, seconds), field));
    }
    return samples;
  };
  const results: Round[] = [];
  while (results.length < rounds) results.push(await round());
  return results;
}

/** Programs that compile themselves while they run are faster afterwards: after so many requests, not after so long. */
async function warmUp(work: Work, server: Server, generator: LoadGenerator): Promise<void> {
  for (let asked = 0; asked < WARM_UP_REQUESTS; ) {
    asked += (await generator.run(loadOf(work, server, WARM_UP_SECONDS))).requests;
  }
}
