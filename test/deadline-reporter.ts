import type { Reporter, TestModule } from "vitest/node";
import { LEFT_OUT } from "./deadline.ts";

/** Says at the end what the deadline has left out. */
export default class DeadlineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules
      .filter(({ children }) => children.array().some((child) => child.name === LEFT_OUT))
      .map(({ relativeModuleId }) => `  ${relativeModuleId}\n`);
    if (files.length === 0) return;
    process.on("exit", () =>
      process.stdout.write(`\nNot run, because no time was left: ${files.length} files.\n${files.join("")}`),
    );
  }
}
