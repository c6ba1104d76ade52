import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** What a program says, up to the line by which one knows that it is ready. */
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
