// GraphQL over HTTP, beside PostGraphile without our plugins and beside a server written by hand; and many subscriptions.

import type { Bench } from "./bench.ts";
import { startLoadGenerator } from "./comparison/load.ts";
import { describeOutcome, type Outcome, outcomeOf } from "./comparison/report.ts";
import { startContent } from "./graphql/content.ts";
import { byTurns } from "./graphql/measure.ts";
import { SERVERS, type Server } from "./graphql/servers.ts";
import { measureSubscriptions, SUBSCRIPTIONS } from "./graphql/subscriptions.ts";
import { compareWithTableInterface, judgeTableInterface } from "./graphql/table-interface.ts";
import { judge } from "./graphql/targets.ts";
import { answerOf, WORKS, type Work } from "./graphql/works.ts";
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

/** Who answers something else does other work. */
async function checkAnswers(work: Work, servers: readonly Server[]): Promise<void> {
  const [mine, ...others] = await Promise.all(servers.map((server) => answerOf(work, server)));
  const different = others.findIndex((answer) => answer !== mine);
  if (different >= 0) {
    const { name } = servers[different + 1]!;
    throw new Error(`${name} answers "${work.name}" differently:\n${others[different]}\nours is\n${mine}`);
  }
}
