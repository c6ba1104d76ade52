import { describe, expect, test } from "vitest";
import type { Scratch } from "../../bench/measuring/scratch.ts";
import { startInstalled } from "../../bench/start-installed.ts";

/** Nobody here looks at it. */
const scratch = {} as Scratch;

function makeEntrants() {
  const log: string[] = [];
  const entrant = (name: string, isInstalled = true) => ({
    isInstalled,
    async start() {
      log.push(`start ${name}`);
      return { name, stop: async () => void log.push(`stop ${name}`) };
    },
  });
  return { log, entrant };
}

describe("the launchers of a benchmark", () => {
  test("start in their order without those that are not installed, and stop together", async () => {
    const { log, entrant } = makeEntrants();
    const { started, ...running } = await startInstalled([entrant("a"), entrant("b", false), entrant("c")], scratch);
    expect(started.map(({ name }) => name)).toEqual(["a", "c"]);
    expect(log).toEqual(["start a", "start c"]);
    await running[Symbol.asyncDispose]();
    expect(log.slice(2).sort()).toEqual(["stop a", "stop c"]);
  });

  test("leave no process if one of them cannot start", async () => {
    const { log, entrant } = makeEntrants();
    const broken = { isInstalled: true, start: () => Promise.reject(new Error("no such program")) };
    await expect(startInstalled([entrant("a"), broken, entrant("c")], scratch)).rejects.toThrow("no such program");
    expect(log).toEqual(["start a", "stop a"]);
  });
});
