import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { format, promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import type { TestDatabase } from "../../database.ts";
import { COMPILE_CACHE } from "../../program.ts";
import { NO_PROJECT, REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";

export type CommandResult = { readonly stdout: string; readonly stderr: string; readonly code: number };

const MAX_OUTPUT = 2 ** 26;

/** Programs that take over the streams of their process. */
const NEEDS_PROCESS = ["mcp", "psql"];
let isRunningInProcess = false;
let runs = 0;

/**
 * A command on that database. In this process, since a process of its own would load all modules again, unless another command still runs:
 * a command has the arguments, the environment and the output of its process.
 */
export function runCommand(
  name: string,
  words: readonly string[],
  { url, ownerUrl }: Pick<TestDatabase, "url" | "ownerUrl">,
  settings: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  const own = { DATABASE_URL: url, OWNER_DATABASE_URL: ownerUrl, JWT_SECRET: SECRET };
  return runWithoutDatabase(name, words, { ...own, ...settings });
}

/** The same with these settings and no other. */
export function runWithoutDatabase(
  name: string,
  words: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<CommandResult> {
  const run = isRunningInProcess || NEEDS_PROCESS.includes(name) ? runCommandWith : runInProcess;
  return run(name, words, settings);
}

/** The options with which the scripts of `package.json` start a command. All programs share the compiled code of their modules. */
export const WITH_COMPILE_CACHE = ["--import", join(REPOSITORY, "service/cli/compile-cache.js")];

/** Runs a command like a person, with these settings and no other. */
export function runCommandWith(
  name: string,
  words: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<CommandResult> {
  const env = environmentOf(settings);
  const options = { cwd: REPOSITORY, env, maxBuffer: MAX_OUTPUT };
  return promisify(execFile)(process.execPath, [...WITH_COMPILE_CACHE, fileOf(name), ...words], options).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    (error) => error as CommandResult,
  );
}

/** Starts a command like a person, with these settings and no other. */
export function startCommand(name: string, words: readonly string[], settings: NodeJS.ProcessEnv) {
  const command = [...WITH_COMPILE_CACHE, fileOf(name), ...words];
  const child = spawn(process.execPath, command, { cwd: REPOSITORY, env: environmentOf(settings) });
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    exited: once(child, "exit").then(([code]) => code as number | null),
  };
}

const fileOf = (name: string) => join(REPOSITORY, `service/cli/${name}.ts`);

function environmentOf(settings: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, MIGRATIONS_DIR: NO_PROJECT };
  // In a process, too, a setting without a value is none.
  return Object.fromEntries(Object.entries({ ...own, ...settings }).filter(([, value]) => value !== undefined));
}

async function runInProcess(
  name: string,
  words: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<CommandResult> {
  isRunningInProcess = true;
  const { argv, env, exitCode } = process;
  const output = captureOutput();
  try {
    process.argv = [process.execPath, fileOf(name), ...words];
    process.env = environmentOf(settings);
    process.exitCode = 0;
    // The module of a command runs it. Only that is loaded anew.
    await import(`${pathToFileURL(fileOf(name)).href}?run=${++runs}`);
    return { ...output.written, code: Number(process.exitCode) };
  } finally {
    output.end();
    Object.assign(process, { argv, env, exitCode });
    // A command sets it, and V8 rejects the compiled code of other modules for as long as it differs.
    setFlagsFromString("--no-lazy-new-space-shrinking");
    isRunningInProcess = false;
  }
}

function captureOutput() {
  const written = { stdout: "", stderr: "" };
  const { log, error } = console;
  const { write } = process.stdout;
  console.log = (...values) => {
    written.stdout += `${format(...values)}\n`;
  };
  console.error = (...values) => {
    written.stderr += `${format(...values)}\n`;
  };
  process.stdout.write = (chunk: string | Uint8Array) => {
    written.stdout += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    return true;
  };
  const end = () => {
    Object.assign(console, { log, error });
    process.stdout.write = write;
  };
  return { written, end };
}
