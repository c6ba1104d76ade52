import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { FunctionSource } from "./functions-folder.ts";
import type { LogLevel, ThreadData } from "./thread/messages.ts";

export type FunctionProblem = { readonly name: string; readonly level: LogLevel; readonly text: string };

const PROGRAM = join(import.meta.dirname, `thread/check-thread${extname(import.meta.filename)}`);

/** Reads the imports of all files, without running them. A function with an error does not start. */
export function checkFunctions(sources: readonly FunctionSource[]): Promise<readonly FunctionProblem[]> {
  const functions: readonly ThreadData[] = sources.map(({ name, file, importMap }) => ({
    name,
    entry: pathToFileURL(file).href,
    importMap,
  }));
  const worker = new Worker(PROGRAM, {
    workerData: functions,
    env: {},
    execArgv: ["--experimental-vm-modules"],
    stdout: true,
    stderr: true,
  });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker
      .on("message", resolve)
      .on("error", reject)
      .on("exit", () => resolve([]));
  });
}
