import { execFile } from "node:child_process";
import { extname, join } from "node:path";
import { packageProgram } from "#runtime";
import { EXIT_FAILURE } from "../command/command.ts";

const EXTENSION = extname(import.meta.filename);
const programOf = (name: string) => join(import.meta.dirname, `../${name}${EXTENSION}`);
const MAX_OUTPUT_BYTES = 1_000_000;

type RunOptions = {
  readonly signal: AbortSignal;
  /** True if the command exits as after a failure when it has found faults, which it prints. */
  readonly exitsWithFindings?: boolean;
};

export type CommandOutput = { readonly text: string; readonly hasFailed: boolean };

/** Runs another command of the service as a process of its own, with the same settings. */
export function runOwnCommand(
  name: string,
  words: readonly string[],
  { signal, exitsWithFindings = false }: RunOptions,
): Promise<CommandOutput> {
  // The program of a package also tells the command how the user calls it.
  const line = packageProgram() === null ? [programOf(name)] : [programOf("content-service"), name];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...process.execArgv, ...line, ...words],
      { signal, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        const hasFailed = error !== null && !(exitsWithFindings && error.code === EXIT_FAILURE && stdout !== "");
        resolve({ text: [stdout.trim(), stderr.trim()].filter((part) => part !== "").join("\n\n"), hasFailed });
      },
    );
  });
}
