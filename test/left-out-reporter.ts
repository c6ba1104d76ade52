import type { Reporter } from "vitest/node";
import { leftOut } from "./test-groups.ts";

/** Says at the end of `npm test` what it has not tested. */
export default class LeftOutReporter implements Reporter {
  onTestRunEnd(): void {
    const subjects = leftOut();
    const files = [...subjects.values()].reduce((sum, count) => sum + count, 0);
    const list = [...subjects].map(([subject, count]) => `  ${String(count).padStart(3)}  ${subject}`);
    process.on("exit", () =>
      process.stdout.write(
        `\nNot run, because they take long: ${files} files. npm run test:all runs them, as CI does.\n${list.join("\n")}\n`,
      ),
    );
  }
}
