import { inspect } from "node:util";
import { isExplained } from "#runtime";
import { restartWorkOfUncaught } from "#runtime/concurrency";
import { standardError } from "#runtime/log";

/** The time limit for closing connections after the last response. */
export const CLOSE_TIMEOUT_MS = 5_000;

/** Prints the message of an expected error, and the stack of a defect. */
export function reportFailure(error: unknown): void {
  standardError().write(`${isExplained(error) ? error.message : inspect(error)}\n`);
  process.exitCode = 1;
}

/**
 * Restarts the background work that an unhandled error comes from, for example an error of a dependency; requests go on. After any other
 * unhandled error the state is unknown, so the process exits, as without a handler.
 */
export function handleUncaughtErrors(): void {
  process.on("uncaughtException", (error) => {
    if (restartWorkOfUncaught(error)) return;
    standardError().write(`${inspect(error)}\n`);
    process.exit(1);
  });
}

/** Exits if something still hangs after this time. */
export function exitAfter(milliseconds: number): void {
  const end = () => {
    standardError().write("Some connections did not close in time; exiting anyway.\n");
    process.exit(1);
  };
  setTimeout(end, milliseconds).unref();
}
