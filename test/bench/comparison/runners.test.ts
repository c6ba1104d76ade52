import { describe, expect, test } from "vitest";
import type { Sample } from "../../../bench/comparison/measure.ts";
import { byTurns, type Runners, roundsOf } from "../../../bench/comparison/runners.ts";

/** The rate tells which of all runs it was: the first, the second… */
function makeRunners() {
  const log: string[] = [];
  const runner =
    (name: string) =>
    async (seconds: number): Promise<Sample> => {
      const rate = log.push(`${name} ${seconds}`);
      return { rate, p50: null, p99: null, serverTime: null, postgresTime: null, clientTime: null };
    };
  const runners: Runners = new Map(["ours", "theirs"].map((name) => [name, runner(name)]));
  return { log, runners };
}

const ratesOf = (rounds: Awaited<ReturnType<typeof roundsOf>>) =>
  rounds.map((round) => Object.fromEntries([...round].map(([name, { rate }]) => [name, rate])));

describe("rounds", () => {
  test("run each server in turn, for a number of seconds", async () => {
    const { log, runners } = makeRunners();
    const rounds = await roundsOf(runners, 2, 0.5);
    expect(log).toEqual(["ours 0.5", "theirs 0.5", "ours 0.5", "theirs 0.5"]);
    expect(ratesOf(rounds)).toEqual([
      { ours: 1, theirs: 2 },
      { ours: 3, theirs: 4 },
    ]);
  });

  test("do not count the warm-up run of each server", async () => {
    const { log, runners } = makeRunners();
    expect(ratesOf(await byTurns(runners, 1, 0.5))).toEqual([{ ours: 3, theirs: 4 }]);
    expect(log).toHaveLength(4);
  });
});
