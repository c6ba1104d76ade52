// Benchmarks GraphQL over HTTP, beside PostGraphile without our plugins and beside a handwritten server; and many subscriptions.

import { type LoadGenerator, startLoadGenerator } from "./comparison/load.ts";
import { sampleOfLoad } from "./comparison/measure.ts";
import { describeOutcome, type Outcome, outcomeOf, type Round } from "./comparison/report.ts";
import { type Runners, roundsOf } from "./comparison/runners.ts";
import { verdict } from "./comparison/targets.ts";
import { startContent } from "./graphql/content.ts";
import { APOLLO, BARE, SERVERS, type Server } from "./graphql/servers.ts";
import { measureSubscriptions, SUBSCRIPTIONS } from "./graphql/subscriptions.ts";
import { compareWithTableInterface, judgeTableInterface } from "./graphql/table-interface.ts";
import { answerOf, CREATE, loadOf, WORKS, type Work } from "./graphql/works.ts";
import type { Bench } from "./measuring/kind.ts";
import type { Scratch } from "./measuring/scratch.ts";
import { printPreface } from "./preface.ts";
import { startInstalled } from "./start-installed.ts";

export const bench: Bench = async (options) => {
  const { rounds, seconds, print } = options;
  print("graphql: the documented queries over HTTP, row-level security on, callers by token");
  printPreface(options, SERVERS);
  print("");

  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  const generator = opened.use(startLoadGenerator());
  const outcomes: Outcome[] = [];
  let tables: Outcome;
  {
    await using installed = await startInstalled(SERVERS, scratch);
    const servers = installed.started;
    for (const work of WORKS) {
      await checkAnswers(work, servers);
      const results = await byTurns(work, rounds, seconds, { scratch, generator, servers });
      const outcome = outcomeOf(work.name, results);
      outcomes.push(outcome);
      print(describeOutcome(outcome, "request"));
    }
    tables = await compareWithTableInterface(servers[0]!, { scratch, generator }, options);
    print(describeOutcome(tables, "request"));
  }

  const subscribed = await measureSubscriptions(scratch);
  const { kibibytesEach, lastMilliseconds, middleMilliseconds } = subscribed;
  const memory = kibibytesEach === null ? "" : `${kibibytesEach.toFixed(0)} KiB of memory each, `;
  const reached = `one event reaches all in ${lastMilliseconds.toFixed(0)} ms, half in ${middleMilliseconds.toFixed(0)} ms`;
  print(`  ${SUBSCRIPTIONS.toLocaleString("en")} idle subscriptions: ${memory}${reached}`);

  print("\n  targets");
  for (const verdict of [...judge(outcomes), judgeTableInterface(tables)]) print(verdict);
  return { outcomes: [...outcomes, tables], subscribed };
};

/** Checks that all servers give the same response: a different response would be different work. */
async function checkAnswers(work: Work, servers: readonly Server[]): Promise<void> {
  const [mine, ...others] = await Promise.all(servers.map((server) => answerOf(work, server)));
  const different = others.findIndex((answer) => answer !== mine);
  if (different >= 0) {
    const { name } = servers[different + 1]!;
    throw new Error(`${name} answers "${work.name}" differently:\n${others[different]}\nours is\n${mine}`);
  }
}

type TargetsByServer = Readonly<Record<string, number>>;

const READ_TARGETS: TargetsByServer = { [BARE]: 5, [APOLLO]: 4 };
/** The targets for writes: most of a write is Postgres's time, which is the same for all servers. */
const WRITE_TARGETS: TargetsByServer = { [BARE]: 3, [APOLLO]: 1 };

/** Returns each target with the reached value and a verdict. Skips servers that did not take part. */
export function judge(outcomes: readonly Outcome[]): string[] {
  return outcomes.flatMap(({ work, ratios, servers }) =>
    Object.entries(ratios).map(([name, reached]) => {
      const [mine, theirs] = [timeOf(servers.ours!), timeOf(servers[name]!)];
      const byTime = mine && theirs ? ` (${(theirs / mine).toFixed(2)} by processor time)` : "";
      const least = (work === CREATE ? WRITE_TARGETS : READ_TARGETS)[name]!;
      return verdict(`${work}: ${reached.toFixed(2)} times ${name}${byTime}`, reached >= least, String(least));
    }),
  );
}

/** Returns the processor time of the server and of Postgres. Its ratio is steadier on a busy machine. */
function timeOf({ serverTime, postgresTime }: Outcome["servers"][string]): number | null {
  return serverTime === null || postgresTime === null ? null : serverTime + postgresTime;
}

type LoadedServers = {
  readonly scratch: Scratch;
  readonly generator: LoadGenerator;
  readonly servers: readonly Server[];
};

const WARM_UP_REQUESTS = 3_000;
const WARM_UP_SECONDS = 0.5;

/** Runs all servers in turn, once they are warm. */
export async function byTurns(work: Work, rounds: number, seconds: number, field: LoadedServers): Promise<Round[]> {
  for (const server of field.servers) await warmUp(work, server, field.generator);
  const runners: Runners = new Map(
    field.servers.map((server) => [
      server.name,
      (seconds: number) => sampleOfLoad(server.pid, loadOf(work, server, seconds), field),
    ]),
  );
  return roundsOf(runners, rounds, seconds);
}

/** Warms up a server by a number of requests, not by time: programs with a just-in-time compiler become faster with each request. */
async function warmUp(work: Work, server: Server, generator: LoadGenerator): Promise<void> {
  for (let asked = 0; asked < WARM_UP_REQUESTS; ) {
    asked += (await generator.run(loadOf(work, server, WARM_UP_SECONDS))).requests;
  }
}
