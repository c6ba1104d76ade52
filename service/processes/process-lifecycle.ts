import { inspect } from "node:util";
import { isExplained } from "#runtime";
import { standardError } from "#runtime/log";

/** How long closing connections may take after the last response. */
export const CLOSE_TIMEOUT_MS = 5_000;

/** Prints the message of an explained error, and the stack of a defect. */
export function reportFailure(error: unknown): void {
  standardError().write(`${isExplained(error) ? error.message : inspect(error)}\n`);
  process.exitCode = 1;
}

/** Exits if something still hangs after this time. */
export function exitAfter(milliseconds: number): void {
  const end = () => {
    standardError().write("Some connections did not close in time; exiting anyway.\n");
    process.exit(1);
  };
  setTimeout(end, milliseconds).unref();
}
