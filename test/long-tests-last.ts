import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isLong } from "./test-groups.ts";

/** What a deadline leaves out are long tests. */
export default class LongTestsLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { long = [], short = [] } = Object.groupBy(await super.sort(files), ({ moduleId }) =>
      isLong(moduleId) ? "long" : "short",
    );
    return [...short, ...long];
  }
}
