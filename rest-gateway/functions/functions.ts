import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import type { Config } from "#config";
import type { GatewayResponse, ResponseBody } from "#http";
import type { FunctionLine } from "#http/observability";
import { shortenText } from "#runtime";
import type { Logger } from "#runtime/log";
import type { FunctionRequest } from "./function-call.ts";
import { FunctionSockets, type FunctionSocketsOptions } from "./function-sockets.ts";
import { FunctionThread, type ThreadEvents } from "./function-thread.ts";
import {
  type FunctionSource,
  type FunctionSources,
  findFunctionsFolder,
  readFunctions,
  watchFunctions,
} from "./functions-folder.ts";
import type { LogLevel, ThreadData } from "./thread/messages.ts";
import { ThreadPool } from "./thread-pool.ts";

const MAX_LINES = 500;
const MAX_TEXT = 2_000;

/** The last lines of this process, for Studio. */
class FunctionLog {
  readonly #lines: FunctionLine[] = [];

  add(line: Omit<FunctionLine, "at">): void {
    this.#lines.push({ at: new Date().toISOString(), ...line, text: shortenText(line.text, MAX_TEXT) });
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }

  list(): readonly FunctionLine[] {
    return this.#lines;
  }
}

type FunctionsSettings = Pick<
  Config,
  | "functions"
  | "functionsDir"
  | "functionsMemory"
  | "functionsTotalMemory"
  | "functionsTimeout"
  | "functionsCpu"
  | "nodeEnv"
>;

type Environment = Readonly<Record<string, string>>;

type FunctionsOptions = FunctionSocketsOptions & {
  readonly config: FunctionsSettings;
  /** Returns `SUPABASE_URL` and similar variables, the same object until one changes. */
  readonly environment: () => Environment;
  readonly log: Pick<Logger, "debug" | "info" | "warn" | "error">;
  readonly idleMs?: number;
};

const IDLE_MS = 60_000;
/** The delay after a change of files, because editors write files in several steps. */
const SETTLE_MS = 50;

/** Opens the functions of a project, which run in threads of this process. Null if they are switched off. */
export function openFunctions(options: FunctionsOptions): Functions | null {
  return options.config.functions === false ? null : new Functions(options);
}

const NO_SOURCES: FunctionSources = { byName: new Map(), secrets: {}, problems: [] };

export class Functions {
  readonly sockets: FunctionSockets;
  readonly #options: FunctionsOptions;
  readonly #log = new FunctionLog();
  /** Null while the project has no functions. */
  #folder: string | null = null;
  #sources = NO_SOURCES;
  readonly #threads: ThreadPool;
  readonly #sweep: NodeJS.Timeout;
  /** False in production, where files are read again by a reload only. */
  readonly #followsFiles: boolean;
  #stopWatching: () => void = () => {};
  /** The environment of the threads that accept requests; null before the first one. */
  #environment: Environment | null = null;
  #isClosed = false;

  constructor(options: FunctionsOptions) {
    this.#options = options;
    this.sockets = new FunctionSockets(options);
    const idleMs = options.idleMs ?? IDLE_MS;
    const { functionsMemory, functionsTotalMemory, nodeEnv } = options.config;
    this.#followsFiles = nodeEnv !== "production";
    this.#threads = new ThreadPool({
      totalMegabytes: Math.max(functionsMemory, functionsTotalMemory),
      find: (name) => this.find(name),
      start: (source, events) => this.#startThread(source, events),
    });
    this.#openFolder();
    this.#check();
    this.#sweep = setInterval(() => this.#threads.retireIdle(idleMs), Math.min(idleMs, 10_000)).unref();
  }

  /** True if the project has a folder of functions. Requests look for it, so that the first function needs no restart. */
  hasFolder(): boolean {
    if (this.#folder === null && this.#followsFiles) {
      try {
        this.#openFolder();
        this.#check();
      } catch (err) {
        this.#options.log.warn({ err }, "the functions could not be read");
      }
    }
    return this.#folder !== null;
  }

  find(name: string): FunctionSource | null {
    return this.hasFolder() ? (this.#sources.byName.get(name) ?? null) : null;
  }

  lines(): readonly FunctionLine[] {
    return this.#log.list();
  }

  call(source: FunctionSource, request: FunctionRequest): Promise<GatewayResponse<ResponseBody>> {
    this.#replaceStaleThreads();
    return this.#threads.call(source, request);
  }

  /** Reads the files again. Requests in flight end with the old code. */
  reload(): void {
    try {
      if (this.#folder !== null && !this.#followsFiles) this.#sources = readFunctions(this.#folder);
      else {
        // The folder may be another one of the same name, which the old watch does not see.
        this.#closeFolder();
        this.#openFolder();
      }
    } catch (err) {
      this.#options.log.warn({ err }, "the functions could not be read again");
      return;
    }
    this.#threads.retireAll();
    this.#check();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    this.#stopWatching();
    await this.sockets.close();
    await this.#threads.close();
  }

  #openFolder(): void {
    const folder = findFunctionsFolder(this.#options.config);
    if (folder === null) return;
    // Files that are written while they are read are noticed.
    const stopWatching = this.#followsFiles ? this.#watch(folder) : () => {};
    try {
      this.#sources = readFunctions(folder);
    } catch (err) {
      stopWatching();
      throw err;
    }
    this.#folder = folder;
    this.#stopWatching = stopWatching;
  }

  #closeFolder(): void {
    this.#stopWatching();
    this.#stopWatching = () => {};
    this.#folder = null;
    this.#sources = NO_SOURCES;
  }

  /** A thread that is never idle would otherwise keep keys that are no longer, or not yet, valid. */
  #replaceStaleThreads(): void {
    const environment = this.#options.environment();
    if (this.#environment !== null && environment !== this.#environment) this.#threads.retireAll();
    this.#environment = environment;
  }

  #startThread(source: FunctionSource, events: ThreadEvents): FunctionThread {
    const { name } = source;
    const { functionsMemory, functionsTimeout, functionsCpu } = this.#options.config;
    return new FunctionThread({
      source,
      environment: { ...this.#options.environment(), ...this.#sources.secrets },
      limits: { memoryMegabytes: functionsMemory, timeoutSeconds: functionsTimeout, cpuSeconds: functionsCpu },
      writeLog: (level, text, request) => {
        this.#log.add({ function: name, level, text, request });
        this.#options.log[level]({ function: name, ...(request && { request }) }, text);
      },
      ...events,
    });
  }

  /** Reports functions that cannot run before somebody calls them. */
  #check(): void {
    const { log } = this.#options;
    for (const problem of this.#sources.problems) log.warn(problem);
    const sources = [...this.#sources.byName.values()];
    if (sources.length === 0) return;
    checkFunctions(sources).then(
      (problems) => {
        for (const { name, level, text } of this.#isClosed ? [] : problems) {
          this.#log.add({ function: name, level, text, request: null });
          log[level]({ function: name }, text);
        }
      },
      (err) => log.warn({ err }, "the functions could not be checked"),
    );
  }

  #watch(folder: string): () => void {
    let timer: NodeJS.Timeout | null = null;
    const onChange = () => {
      clearTimeout(timer ?? undefined);
      timer = setTimeout(() => this.reload(), SETTLE_MS).unref();
    };
    const onError = (err: unknown) => this.#options.log.warn({ err }, "changes of functions are not noticed");
    try {
      const stopWatching = watchFunctions(folder, { onChange, onError });
      return () => {
        clearTimeout(timer ?? undefined);
        stopWatching();
      };
    } catch (err) {
      onError(err);
      return () => {};
    }
  }
}

type FunctionProblem = { readonly name: string; readonly level: LogLevel; readonly text: string };

const CHECK_PROGRAM = join(import.meta.dirname, `thread/check-thread${extname(import.meta.filename)}`);

/** Reads the imports of all files, without running them. A function with an error does not start. */
function checkFunctions(sources: readonly FunctionSource[]): Promise<readonly FunctionProblem[]> {
  const functions: readonly ThreadData[] = sources.map(({ name, file, importMap, jsx }) => ({
    name,
    entry: pathToFileURL(file).href,
    importMap,
    jsx,
  }));
  const worker = new Worker(CHECK_PROGRAM, {
    workerData: functions,
    env: {},
    execArgv: ["--experimental-vm-modules", "--experimental-import-meta-resolve"],
    stdout: true,
    stderr: true,
  });
  worker.unref();
  return new Promise((resolve, reject) => {
    worker
      .on("message", resolve)
      .on("error", reject)
      .on("exit", () => resolve([]));
  });
}
