import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { secondsOf } from "./durations.ts";
import { divide } from "./shards.ts";

/** The longest files begin first, so that no core waits at the end for one that began late. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return longestFirst(files);
  }

  /** `--shard=1/3`: each machine gets about the same work, and the union is everything. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard!;
    return divide(longestFirst(files), (file) => secondsOf(pathOf(file)), count)[index - 1]!;
  }
}

/** Sorts files by their durations. Those of equal length come in the order of their names, which is the same on all machines. */
function longestFirst(files: readonly TestSpecification[]): TestSpecification[] {
  return files.toSorted((a, b) => secondsOf(pathOf(b)) - secondsOf(pathOf(a)) || (a.moduleId < b.moduleId ? -1 : 1));
}

function pathOf({ project, moduleId }: TestSpecification): string {
  return relative(project.config.root, moduleId);
}
