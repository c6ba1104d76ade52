import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** Returns the lines that a program prints, up to the one that says that it is ready. */
export async function linesUntil(program: ChildProcess, pattern: RegExp): Promise<readonly string[]> {
  const lines = createInterface({ input: program.stdout! });
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  const said: string[] = [];
  lines.on("line", (line) => {
    said.push(line);
    if (pattern.test(line)) resolve(said);
  });
  lines.on("close", () => reject(new Error(`It never said ${pattern}:\n${said.join("\n")}`)));
  return promise;
}
