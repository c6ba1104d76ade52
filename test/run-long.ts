// Runs the tests that take longer than a change may wait for: `npm run test:long`, or with names of parts. Before a release each part runs once.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { argv, exit } from "node:process";
import { type LongRun, longRuns, PARTS, writeLongRuns } from "./long-runs.ts";
import { REPOSITORY } from "./repository.ts";

const names = argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. The parts are ${Object.keys(PARTS).join(", ")}.`);
  exit(2);
}

const failed: string[] = [];
for (const [name, command] of Object.entries(PARTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.log(`\n${name}: ${command}`);
  const run = await measured(command);
  console.log(`${name}: ${run.passed ? "passed" : "failed"} in ${run.minutes} minutes`);
  if (!run.passed) failed.push(name);
  writeLongRuns({ ...longRuns(), [name]: run });
}
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(", ")}`);
  exit(1);
}

async function measured(command: string): Promise<LongRun> {
  const begun = performance.now();
  const child = spawn("bash", ["-c", command], { cwd: REPOSITORY, stdio: "inherit" });
  const [code] = await once(child, "exit");
  return {
    passed: code === 0,
    date: new Date().toISOString().slice(0, 10),
    minutes: Math.ceil((performance.now() - begun) / 60_000),
    cores: availableParallelism(),
  };
}
