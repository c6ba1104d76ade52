import { enableCompileCache } from "node:module";
import { join, sep } from "node:path";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { ConfigError } from "#config";
import { standardError } from "#runtime/log";

/** How long closing connections may take after the last response. */
export const CLOSE_TIMEOUT_MS = 5_000;

/** Prints the message of an expected error, and the stack of an unexpected one. */
export function reportFailure(error: unknown): void {
  const isExpected = error instanceof ConfigError || (error instanceof Error && error.constructor === Error);
  standardError().write(`${isExpected ? error.message : inspect(error)}\n`);
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

/**
 * Makes V8 keep the memory of its young generation between scavenges. Returning it to the system and faulting it in again,
 * many times per second, costs 5 % of a small request.
 */
export function keepYoungGenerationMemory(): void {
  setFlagsFromString("--lazy-new-space-shrinking");
}

/**
 * Keeps compiled code and stripped types for the next start, also that of workers, which takes 40 % less processor time
 * then. In the folder of the installed packages, because others must not be able to write code there; without effect if
 * this user may not write there either.
 */
export function cacheCompiledCode(environment: NodeJS.ProcessEnv): void {
  const [root] = import.meta.dirname.split(`${sep}node_modules${sep}`);
  const isInstalled = root !== import.meta.dirname;
  const packages = join(isInstalled ? root! : join(import.meta.dirname, "../.."), "node_modules");
  environment.NODE_COMPILE_CACHE ??= join(packages, ".cache/content-service");
  enableCompileCache(environment.NODE_COMPILE_CACHE);
}
