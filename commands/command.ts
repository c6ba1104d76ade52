import { parseArgs } from "node:util";
import { type Config, ConfigError, readConfig } from "../engine/config/config.ts";
import { commandLine } from "./command-line.ts";

/** A mistake of the person at the keyboard: told in words, without a stack. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** What a script can tell from how a command ends. */
export const FAILED = 1;
export const MISREAD = 2;
const EXIT_CODES = `Ends with 0 when it is done, ${FAILED} when it failed or was refused, ${MISREAD} when the line cannot be read.`;

type Command = {
  /** Each form with what it does, and examples. */
  readonly usage: string;
  readonly options?: NonNullable<Parameters<typeof parseArgs>[0]>["options"];
  /** Leaves the words to another program; only --help alone is ours. */
  readonly passOn?: boolean;
  run(config: Config, words: readonly string[], options: Readonly<Record<string, unknown>>): Promise<void>;
};

/** Runs a command line: `--help`, the settings, one message and an exit code when something is wrong. */
export async function runCommand({ usage, options = {}, passOn = false, run }: Command): Promise<void> {
  try {
    const { values, positionals } = passOn ? readNothing() : readWords(options);
    if (values.help) {
      console.log(`${usage}\n\n${EXIT_CODES}`);
      return;
    }
    const { config, warnings } = readConfig(process.env);
    for (const warning of warnings) console.error(`warning: ${warning}`);
    await run(config, positionals, values);
  } catch (error) {
    console.error(isPlain(error) ? `${error.message}` : error);
    const isMisread = error instanceof UsageError;
    if (isMisread) console.error(`\n${usage}`);
    process.exitCode = isMisread ? MISREAD : FAILED;
  }
}

/** Of a command that does several things: what its first word names. */
export function actionOf<Action>(actions: Readonly<Record<string, Action>>, command: string, word: string): Action {
  if (word === "") throw new UsageError(`Say what to do: ${Object.keys(actions).join(", ")}.`);
  const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (!action) throw new UsageError(`"${word}" is not something that ${commandLine(command)} does.`);
  return action;
}

function readWords(options: NonNullable<Command["options"]>) {
  try {
    return parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } }, allowPositionals: true });
  } catch (error) {
    throw isMistypedOption(error) ? new UsageError(plainWords(error)) : error;
  }
}

/** What Node says of an option, without its advice on words that begin with a dash. */
function plainWords({ message }: Error): string {
  const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  return unknown ? `There is no option ${unknown}.` : message.split("\n", 1)[0]!;
}

function readNothing(): { values: Record<string, unknown>; positionals: string[] } {
  const positionals = process.argv.slice(2);
  return { values: { help: positionals.length === 1 && positionals[0] === "--help" }, positionals };
}

/** Errors made for people; anything else is a fault of the program and shows its stack. */
function isPlain(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return [Error, ConfigError, UsageError].some((plain) => error.constructor === plain);
}

function isMistypedOption(error: unknown): error is Error {
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}
