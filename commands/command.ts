import { parseArgs } from "node:util";
import { type Config, ConfigError, readConfig } from "../engine/config/config.ts";

/** A mistake of the person at the keyboard: told in words, without a stack. */
export class UsageError extends Error {
  override name = "UsageError";
}

type Command = {
  readonly usage: string;
  readonly options?: NonNullable<Parameters<typeof parseArgs>[0]>["options"];
  run(config: Config, words: readonly string[], options: Readonly<Record<string, unknown>>): Promise<void>;
};

/** Runs a command line: `--help`, the settings, one message and an exit code when something is wrong. */
export async function runCommand({ usage, options = {}, run }: Command): Promise<void> {
  try {
    const { values, positionals } = parseArgs({
      options: { ...options, help: { type: "boolean", short: "h" } },
      allowPositionals: true,
    });
    if (values.help) {
      console.log(usage);
      return;
    }
    const { config, warnings } = readConfig(process.env);
    for (const warning of warnings) console.error(`warning: ${warning}`);
    await run(config, positionals, values);
  } catch (error) {
    console.error(isPlain(error) ? `${error.message}` : error);
    if (error instanceof UsageError) console.error(`\n${usage}`);
    process.exitCode = 1;
  }
}

/** Errors made for people; anything else is a fault of the program and shows its stack. */
function isPlain(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return (
    error instanceof ConfigError ||
    error instanceof UsageError ||
    error.constructor === Error ||
    isMistypedOption(error)
  );
}

function isMistypedOption(error: Error): boolean {
  return String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}
