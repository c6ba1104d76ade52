import { processorTimeOf } from "../measuring/processor-time.ts";
import type { Scratch } from "../measuring/scratch.ts";
import type { Load, LoadGenerator } from "./load.ts";
import type { MeasuredServer } from "./program.ts";
import { TOKENS } from "./tokens.ts";
import { requestOf, type Work } from "./work.ts";

export type Sample = {
  /** Requests per second, or rows per second if a request writes many. */
  readonly rate: number;
  /** The latency in milliseconds. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** Processor time per request or row, in microseconds; null if unknown. */
  readonly serverTime: number | null;
  readonly postgresTime: number | null;
  readonly clientTime: number | null;
};

type LoadTools = { readonly scratch: Scratch; readonly generator: LoadGenerator };

/** Measures a server under the load of a work. */
export async function sampleOf(server: MeasuredServer, work: Work, seconds: number, tools: LoadTools): Promise<Sample> {
  const { connections, tokens } = work;
  const load = { ...requestOf(work, server), connections, seconds, tokens: TOKENS[tokens] };
  return sampleOfLoad(server.pid, load, tools, work.rows ?? 1);
}

/** Measures a program under a load whose requests each do this many units of work. */
export async function sampleOfLoad(
  pid: number,
  load: Load,
  { scratch, generator }: LoadTools,
  units = 1,
): Promise<Sample> {
  const look = () => Promise.all([processorTimeOf(pid), scratch.processorTime()]);
  const [server, postgres] = await look();
  const { requests, seconds: taken, p50, p99, processorTime } = await generator.run(load);
  const [serverLater, postgresLater] = await look();
  const count = requests * units;
  const perOne = (before: number | null, after: number | null) =>
    before === null || after === null ? null : (after - before) / count;
  return {
    rate: count / taken,
    p50,
    p99,
    serverTime: perOne(server, serverLater),
    postgresTime: perOne(postgres, postgresLater),
    clientTime: processorTime / count,
  };
}

/** Measures a run that only returns its rate per second. */
export async function sampleOfRate(scratch: Scratch, seconds: number, run: () => Promise<number>): Promise<Sample> {
  const before = await scratch.processorTime();
  const rate = await run();
  const after = await scratch.processorTime();
  const postgresTime = before === null || after === null ? null : (after - before) / (rate * seconds);
  return { rate, p50: null, p99: null, serverTime: null, postgresTime, clientTime: null };
}
