import { availableParallelism } from "node:os";
import type { Reporter, TestModule } from "vitest/node";
import { type Duration, overTime, recordedDurations, writeRecord } from "./durations.ts";
import { leftOut, type TestGroup, testFiles } from "./test-groups.ts";

/** Compares the durations of files with those of their group, records them with `RECORD=durations`, and prints which files were left out. */
export default class DurationsReporter implements Reporter {
  readonly #group: TestGroup;
  readonly #begun = performance.now();

  constructor({ group }: { readonly group: TestGroup }) {
    this.#group = group;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const measured = new Map(modules.map((module) => [module.relativeModuleId, durationOf(module)]));
    const records = process.env.RECORD === "durations";
    if (records) this.#record(measured);
    const late = records ? [] : overTime(measured);
    if (late.length > 0) process.exitCode = 1;
    // Vitest prints its own summary after this.
    process.on("exit", () => process.stdout.write(`${textOf(late)}${this.#group === "default" ? leftOutText() : ""}`));
  }

  #record(measured: ReadonlyMap<string, Duration>): void {
    const { runs, files } = recordedDurations;
    const whole = testFiles(this.#group).every((file) => measured.has(file));
    const minutes = Math.round((performance.now() - this.#begun) / 6_000) / 10;
    // The duration beside all other files decides: `npm test` alone would make short ones of too many.
    const renewed = ["all", "named"].includes(this.#group) ? new Map([...files, ...measured]) : files;
    const existing = new Set(testFiles("named"));
    writeRecord({
      runs: whole ? { ...runs, [this.#group]: { minutes, cores: availableParallelism() } } : runs,
      files: new Map([...renewed].filter(([file]) => existing.has(file))),
    });
  }
}

function durationOf(module: TestModule): Duration {
  const tenths = (seconds: number) => Math.round(seconds * 10) / 10;
  return { wall: tenths(module.diagnostic().duration / 1_000), processor: tenths(module.meta().processor ?? 0) };
}

function textOf(late: readonly string[]): string {
  if (late.length === 0) return "";
  const list = late.map((line) => `  ${line}\n`).join("");
  return `\n${list}Make it shorter, divide it, or record how long it takes: npm run test:record -- <file>\n`;
}

function leftOutText(): string {
  const folders = [...leftOut()].sort(([, a], [, b]) => b - a);
  const files = folders.reduce((sum, [, count]) => sum + count, 0);
  const list = folders.map(([folder, count]) => `${folder} ${count}`).join(", ");
  return `\nNot run, because they take long: ${files} files (${list}). npm run test:all runs them, as CI does.\n`;
}
