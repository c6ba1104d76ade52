import { basename } from "node:path";
import { parseArgs } from "node:util";
import { type Config, ConfigError, readConfig } from "../engine/config/config.ts";

/** A mistake of the person at the keyboard: told in words, without a stack. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** What a script can tell from how a command ends. */
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
const EXIT_CODES = `Exit codes: 0 success, ${EXIT_FAILURE} failure, ${EXIT_USAGE} usage error.`;

type CommandDefinition = {
  /** Each form with what it does, and examples. */
  readonly usage: string;
  readonly options?: NonNullable<Parameters<typeof parseArgs>[0]>["options"];
  /** Leaves the words to another program; only --help alone is ours. */
  readonly passThrough?: boolean;
  run(config: Config, args: readonly string[], options: Readonly<Record<string, unknown>>): Promise<void>;
};

/** Runs a command line: `--help`, the settings, one message and an exit code when something is wrong. */
export async function runCommand({ usage, options = {}, passThrough = false, run }: CommandDefinition): Promise<void> {
  try {
    const { values, positionals } = passThrough ? passArguments() : parseCommandLine(options);
    if (values.help) {
      console.log(`${usage}\n\n${EXIT_CODES}`);
      return;
    }
    const { config, warnings } = readConfig(process.env);
    for (const warning of warnings) console.error(`warning: ${warning}`);
    await run(config, positionals, values);
  } catch (error) {
    console.error(isExpectedError(error) ? `${error.message}` : error);
    const isUsageError = error instanceof UsageError;
    if (isUsageError) console.error(`\n${usage}`);
    process.exitCode = isUsageError ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** Of a command that does several things: what its first word names. */
export function findAction<Action>(actions: Readonly<Record<string, Action>>, command: string, word: string): Action {
  if (word === "") throw new UsageError(`Specify an action: ${Object.keys(actions).join(", ")}.`);
  const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (!action) throw new UsageError(`${commandLine(command)} has no action "${word}".`);
  return action;
}

function parseCommandLine(options: NonNullable<CommandDefinition["options"]>) {
  try {
    return parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } }, allowPositionals: true });
  } catch (error) {
    throw isOptionError(error) ? new UsageError(optionErrorMessage(error)) : error;
  }
}

/** What Node says of an option, without its advice on words that begin with a dash. */
function optionErrorMessage({ message }: Error): string {
  const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  return unknown ? `Unknown option ${unknown}.` : message.split("\n", 1)[0]!;
}

function passArguments(): { values: Record<string, unknown>; positionals: string[] } {
  const positionals = process.argv.slice(2);
  return { values: { help: positionals.length === 1 && positionals[0] === "--help" }, positionals };
}

/** Errors made for people; anything else is a fault of the program and shows its stack. */
function isExpectedError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return [Error, ConfigError, UsageError].some((plain) => error.constructor === plain);
}

function isOptionError(error: unknown): error is Error {
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}

type CommandLineOptions = {
  /** Without what npm says of its own, for output that a program reads. */
  readonly silent?: boolean;
};

/** A line that calls one of our commands in the way in which this one was called: an npm script, or the package's one command. */
export function commandLine(name: string, args = "", { silent = false }: CommandLineOptions = {}): string {
  const program = packageCommand();
  if (program !== null) return joinParts(program, name, args);
  if (name === "start") return joinParts("npm start", args);
  // What the shell reads itself needs no dashes before it.
  const dashes = args === "" || /^[<>|]/.test(args) ? "" : "--";
  return joinParts(silent ? "npm run --silent" : "npm run", name, dashes, args);
}

/** `content-service`, by npx where npx called it; null in a script of a clone. */
function packageCommand(): string | null {
  const program = basename(process.argv[1] ?? "", ".js");
  if (program !== "content-service") return null;
  return process.env.npm_command === "exec" ? `npx ${program}` : program;
}

function joinParts(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}

/** Whether the service is to start: it takes settings, and no words but `--dev`. Anything else is answered here. */
export function acceptsStartArguments(args: readonly string[]): boolean {
  const [arg] = args.filter((each) => each !== "--dev");
  if (arg === undefined) return true;
  const usage = `${commandLine("start")} takes no arguments. Settings are environment variables, such as PORT=8080; ${commandLine("config")} shows all of them.`;
  if (arg === "--help" || arg === "-h") {
    console.log(usage);
    return false;
  }
  console.error(arg.startsWith("-") ? `Unknown option ${arg}.` : `Unexpected argument "${arg}".`);
  console.error(`\n${usage}`);
  process.exitCode = EXIT_USAGE;
  return false;
}
