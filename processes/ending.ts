import { inspect } from "node:util";
import { ConfigError } from "../engine/config/config.ts";
import { standardError } from "../engine/output/standard-streams.ts";

/** What is closed after the last answer needs no longer, unless it hangs. */
export const LETTING_GO_MS = 5_000;

/** What people can mend is said in words; a fault of the program shows where it happened. */
export function fail(error: unknown): void {
  const plain = error instanceof ConfigError || (error instanceof Error && error.constructor === Error);
  standardError().write(`${plain ? error.message : inspect(error)}\n`);
  process.exitCode = 1;
}

/** For when everything should have been closed by then, and something hangs. */
export function endAfter(milliseconds: number): void {
  const end = () => {
    standardError().write("What is still open does not close; ending without it.\n");
    process.exit(1);
  };
  setTimeout(end, milliseconds).unref();
}
