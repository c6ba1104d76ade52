import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { endWithParent } from "../cluster/embedded/processes.ts";
import type { TestDatabase } from "./database.ts";
import { NO_PROJECT, REPOSITORY } from "./repository.ts";
import { settingsOf } from "./routers/through-router.ts";
import { SECRET } from "./secret.ts";
import { until } from "./until.ts";

/** Programs that are started again and again load faster by it. */
export const COMPILE_CACHE = join(REPOSITORY, "node_modules/.cache/compile");

/**
 * The same for processes that compile with the usual options of V8, as the tests themselves. V8 rejects code that was compiled with those of
 * `compile-cache.js`: in one folder each of the two would compile anew, and write, what the other one has written.
 */
export const COMPILE_CACHE_OF_TESTS = `${COMPILE_CACHE}-tests`;

/** The service, as `npm start` runs it. */
export type Program = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly printed: () => string;
  readonly logged: () => string;
  kill(): Promise<void>;
};

export type RunOptions = {
  readonly args?: readonly string[];
  readonly root?: string;
  /** The file descriptor that standard output and standard error go to; both are collected where there is none. */
  readonly output?: number;
};

/**
 * A program of ours with this environment and no other; the service is one process unless it says otherwise. It ends with the
 * tests, even if Ctrl-C ends them: a service that drains may take minutes.
 */
export function run(
  file: string,
  environment: NodeJS.ProcessEnv,
  { args = [], root = REPOSITORY, output }: RunOptions = {},
) {
  const project = root === REPOSITORY ? { MIGRATIONS_DIR: NO_PROJECT } : {};
  const child = spawn(process.execPath, [join(root, file), ...args], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      PORT: "0",
      WEB_CONCURRENCY: "1",
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...project,
      LOAD_SHEDDING: "false",
      ...environment,
    },
    stdio: ["ignore", output ?? "pipe", output ?? "pipe"],
  });
  endWithParent(child, "SIGKILL");
  const streams = { printed: "", logged: "" };
  child.stdout?.on("data", (chunk) => (streams.printed += chunk));
  child.stderr?.on("data", (chunk) => (streams.logged += chunk));
  return { child, streams };
}

/** Resolves when it is ready, or has ended without. */
export async function startProgram(environment: NodeJS.ProcessEnv, options: RunOptions = {}): Promise<Program> {
  const { child, streams } = run("server.js", environment, options);
  let hasEnded = false;
  const ended = once(child, "close").then(() => {
    hasEnded = true;
  });
  await until(() => hasEnded || streams.printed.includes("ready in"));
  return {
    child,
    url: /address +(\S+)/.exec(streams.printed)?.[1] ?? "",
    printed: () => streams.printed,
    logged: () => streams.logged,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Starts a program, and rejects if it ends before it is ready. */
export async function startReady(environment: NodeJS.ProcessEnv, options: RunOptions = {}): Promise<Program> {
  const program = await startProgram(environment, options);
  const { url, child, logged } = program;
  if (url === "") throw new Error(`It ended with ${child.exitCode} before it was ready:\n${logged()}`);
  return program;
}

/** Starts a gateway on that database; resolves when it is ready. */
export async function startGateway(
  database: Pick<TestDatabase, "url" | "ownerUrl">,
  settings: NodeJS.ProcessEnv = {},
  options: RunOptions = {},
): Promise<Program> {
  const environment = { ...settingsOf(database), JWT_SECRET: SECRET, USERS_ACCESS: "open", ...settings };
  const program = await startReady(environment, options);
  const workers = Number(settings.WEB_CONCURRENCY ?? 1);
  // The others follow the first one, which is ready.
  if (workers > 1 && program.url.startsWith("http:")) await until(async () => (await workersOf(program)) === workers);
  return program;
}

/** The number of workers that serve. */
export async function workersOf({ url }: Program): Promise<number> {
  const response = await fetch(`${url}/health`, { headers: { Connection: "close" } });
  return ((await response.json()) as { workers: number }).workers;
}

/** Its exit code. */
export async function stopped({ child }: Program, signal: NodeJS.Signals): Promise<number | null> {
  const ended = once(child, "close");
  child.kill(signal);
  return (await ended)[0];
}
