import { execFile } from "node:child_process";
import { extname, join } from "node:path";
import { packageProgram } from "#runtime";

const EXTENSION = extname(import.meta.filename);
const programOf = (name: string) => join(import.meta.dirname, `../${name}${EXTENSION}`);
const MAX_OUTPUT_BYTES = 1_000_000;

export type CommandOutput = { readonly text: string; readonly hasFailed: boolean };

/** Runs another command of the service as a process of its own, with the same settings. */
export function runOwnCommand(name: string, words: readonly string[], signal: AbortSignal): Promise<CommandOutput> {
  // The program of a package also tells the command how the user calls it.
  const line = packageProgram() === null ? [programOf(name)] : [programOf("content-service"), name];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...process.execArgv, ...line, ...words],
      { signal, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        // A command that finds faults says them, and exits with 1.
        const hasFailed = error !== null && stdout === "";
        resolve({ text: [stdout.trim(), stderr.trim()].filter((part) => part !== "").join("\n\n"), hasFailed });
      },
    );
  });
}
