import { parseArgs, styleText } from "node:util";
import { type Config, readConfig } from "#config";
import { commandLine, didYouMean, ExplainedError, isExplained } from "#runtime";
import { growYoungGeneration } from "../../processes/young-generation.ts";

export class UsageError extends ExplainedError {
  override name = "UsageError";
}

/** The exit codes of commands. */
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
const EXIT_CODES = `Exit codes: 0 success, ${EXIT_FAILURE} failure, ${EXIT_USAGE} usage error.`;

type CommandDefinition = {
  /** The forms of the command, what they do, and examples. */
  readonly usage: string;
  readonly options?: NonNullable<Parameters<typeof parseArgs>[0]>["options"];
  /** Passes all arguments to another program, except a single --help. */
  readonly passThrough?: boolean;
  run(config: Config, args: readonly string[], options: Readonly<Record<string, unknown>>): Promise<void>;
};

/** Runs a command: handles `--help`, reads the settings, prints errors and sets the exit code. */
export async function runCommand({ usage, options = {}, passThrough = false, run }: CommandDefinition): Promise<void> {
  growYoungGeneration();
  process.stdout.off("error", endWithReader).on("error", endWithReader);
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
    const isUsageError = error instanceof UsageError;
    // The error is the last line, where people look first.
    if (isUsageError) console.error(`${shortUsage(usage)}\n`);
    console.error(isExplained(error) ? inRed(messageOf(error)) : error);
    process.exitCode = isUsageError ? EXIT_USAGE : EXIT_FAILURE;
  }
}

/** Ends the command when the reader of its output has ended, as `head` does. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit();
}

const MAX_USAGE_LINES = 10;

/** The forms of the command without the examples; without the explanations too if that would be long. */
function shortUsage(usage: string): string {
  const [forms] = usage.split("\n\n") as [string];
  const lines = forms.split("\n");
  if (lines.length <= MAX_USAGE_LINES) return forms;
  const names = lines.filter((line) => !line.startsWith(" "));
  return [...names.slice(0, MAX_USAGE_LINES - 1), "  --help explains them."].join("\n");
}

/** Colours the text where a terminal shows colours. */
function inRed(text: string): string {
  return styleText("red", text, { stream: process.stderr });
}

/** The action that the first argument names. */
export function findAction<Action>(actions: Readonly<Record<string, Action>>, command: string, word: string): Action {
  if (word === "") throw new UsageError(`Specify an action: ${Object.keys(actions).join(", ")}.`);
  const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (!action)
    throw new UsageError(
      `${commandLine(command)} has no action "${word}"${didYouMean(word, Object.keys(actions)) || "."}`,
    );
  return action;
}

function parseCommandLine(options: NonNullable<CommandDefinition["options"]>) {
  try {
    return parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } }, allowPositionals: true });
  } catch (error) {
    throw isOptionError(error) ? new UsageError(optionErrorMessage(error, Object.keys(options))) : error;
  }
}

/** The error message of parseArgs, without its advice on arguments that start with a dash. */
function optionErrorMessage({ message }: Error, known: readonly string[]): string {
  const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (unknown === undefined) return message.split("\n", 1)[0]!;
  const names = known.map((name) => `--${name}`);
  return `Unknown option ${unknown}${didYouMean(unknown, names) || "."}`;
}

function passArguments(): { values: Record<string, unknown>; positionals: string[] } {
  const positionals = process.argv.slice(2);
  return { values: { help: positionals.length === 1 && positionals[0] === "--help" }, positionals };
}

/** Node names the system call and its error code, which are for programmers. */
function messageOf(error: NodeJS.ErrnoException): string {
  const { code, syscall, path } = error;
  if (!["open", "access"].includes(syscall ?? "") || path === undefined) return error.message;
  return code === "ENOENT" ? `File not found: ${path}.` : `${path} cannot be read: ${code}.`;
}

function isOptionError(error: unknown): error is Error {
  return error instanceof Error && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");
}

/** The arguments of a start; `--branch NAME` sets DATABASE_BRANCH. */
export function takeBranch(args: readonly string[], environment: NodeJS.ProcessEnv): readonly string[] {
  const at = args.indexOf("--branch");
  if (at < 0 || args[at + 1] === undefined) return args;
  environment.DATABASE_BRANCH = args[at + 1];
  return args.toSpliced(at, 2);
}

/** True if the service should start: `--dev` and `--branch NAME` are the only arguments. For others, prints the usage or an error. */
export function acceptsStartArguments(args: readonly string[]): boolean {
  const [arg] = args.filter((each) => each !== "--dev");
  if (arg === undefined) return true;
  const command = commandLine(args.includes("--dev") ? "dev" : "start");
  const usage = `${command} takes no arguments but --branch NAME. Settings are environment variables, such as PORT=8080; ${commandLine("config")} shows all of them.`;
  if (arg === "--help" || arg === "-h") {
    console.log(usage);
    return false;
  }
  console.error(`${usage}\n`);
  console.error(inRed(arg.startsWith("-") ? `Unknown option ${arg}.` : `Unexpected argument "${arg}".`));
  process.exitCode = EXIT_USAGE;
  return false;
}

/** A table with the records' field names as header. */
export function formatRecords(records: readonly Readonly<Record<string, unknown>>[]): string {
  return formatColumns([
    Object.keys(records[0] ?? {}),
    ...records.map((record) => Object.values(record).map(formatCell)),
  ]);
}

function formatCell(value: unknown): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Aligns cells in columns. */
export function formatColumns(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) => padCells(line, widths)).join("\n");
}

function padCells(line: readonly string[], widths: readonly number[]): string {
  return line
    .map((cell, column) => cell.padEnd(widths[column]!))
    .join("   ")
    .trimEnd();
}
