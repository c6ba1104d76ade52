import { relative } from "node:path";
import type { Reporter } from "vitest/node";
import { REPOSITORY } from "./repository.ts";

type Count = { readonly covered: number; readonly total: number };

/** The part of a coverage map of Istanbul that is read here. */
type CoverageMap = {
  files(): string[];
  fileCoverageFor(file: string): { toSummary(): { readonly data: Record<"branches" | "lines", Count> } };
};

/** Prints how many branches and lines of each room the tests ran in their own processes. */
export default class CoverageReporter implements Reporter {
  onCoverage(coverage: unknown): void {
    const map = coverage as CoverageMap;
    const rooms = Map.groupBy(map.files(), (file) => relative(REPOSITORY, file).split("/")[0]!);
    const lines = [...rooms].sort().map(([room, files]) => {
      const summaries = files.map((file) => map.fileCoverageFor(file).toSummary().data);
      const share = (kind: "branches" | "lines") => percent(summaries.map((summary) => summary[kind]));
      return `${room.padEnd(14)}${share("branches")} of branches${share("lines")} of lines\n`;
    });
    process.on("exit", () => process.stdout.write(`\n${lines.join("")}`));
  }
}

function percent(counts: readonly Count[]): string {
  const sum = (kind: keyof Count) => counts.reduce((all, count) => all + count[kind], 0);
  return `${((100 * sum("covered")) / Math.max(1, sum("total"))).toFixed(1)} %`.padStart(9);
}
