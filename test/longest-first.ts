import { BaseSequencer, type TestSpecification, type Vitest } from "vitest/node";
import { DEADLINE } from "./deadline.ts";
import { recordedDurations, SECONDS_OF_A_SHORT_FILE } from "./durations.ts";
import { divide } from "./shards.ts";

/**
 * The longest files begin first, so that no core waits at the end for one that began late. Under a deadline the short ones do, because what
 * it leaves out are long ones then.
 */
export default class LongestFirst extends BaseSequencer {
  readonly #shard: Vitest["config"]["shard"];

  constructor(vitest: Vitest) {
    super(vitest);
    this.#shard = vitest.config.shard;
  }

  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = files.toSorted((a, b) => secondsOf(b) - secondsOf(a));
    if (DEADLINE === Number.POSITIVE_INFINITY) return sorted;
    const isShort = (file: TestSpecification) => secondsOf(file) <= SECONDS_OF_A_SHORT_FILE;
    return [...sorted.filter(isShort), ...sorted.filter((file) => !isShort(file)).reverse()];
  }

  /** `--shard=1/3`: each machine gets about the same work, and the union is everything. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.#shard!;
    const sorted = files.toSorted((a, b) => secondsOf(b) - secondsOf(a) || (a.moduleId < b.moduleId ? -1 : 1));
    return divide(sorted, secondsOf, count)[index - 1]!;
  }
}

function secondsOf({ project, moduleId }: TestSpecification): number {
  const file = moduleId.slice(project.config.root.length + 1);
  return recordedDurations().files.get(file)?.wall ?? 0;
}
