import { setPriority } from "node:os";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { type HeapInfo, setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import type { GatewayResponse, HttpError, ResponseBody } from "#http";
import { CallNotBegun, type FunctionRequest, functionCall, type PendingCall } from "./function-call.ts";
import { bootFailed, idleTimeout, threadEnded, workerFailed, workerLimit } from "./functions-error.ts";
import type { FunctionSource } from "./functions-folder.ts";
import type { LogLevel, ThreadData, ThreadOrder, ThreadReport } from "./thread/messages.ts";
import { transferListOf } from "./thread/transferred-bytes.ts";

type ThreadLimits = {
  readonly memoryMegabytes: number;
  readonly timeoutSeconds: number;
  readonly cpuSeconds: number;
};

export type ThreadEvents = {
  /** Called once, when the thread is being ended or will accept no more requests. */
  readonly onRetired: () => void;
  /** Called once, when its memory is free. */
  readonly onEnded: (end: { readonly hasStarted: boolean }) => void;
  /** Called when the thread has started, and when a request has ended. */
  readonly onFree: () => void;
  readonly onMeasured: () => void;
};

type ThreadOptions = ThreadEvents & {
  readonly source: FunctionSource;
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: ThreadLimits;
  readonly writeLog: (level: LogLevel, text: string, requestId: string | null) => void;
};

const PROGRAM = join(import.meta.dirname, `thread/thread${extname(import.meta.filename)}`);
const CHECK_MS = 50;
const BOOT_MS = 30_000;
const MEGABYTE = 2 ** 20;
/** The memory that is assumed for a thread before it is measured. */
export const NEW_THREAD_BYTES = 24 * MEGABYTE;
/** The time after which the requests of a thread fail that cannot be interrupted; the thread ends later. */
const LONGEST_END_MS = 2_000;
/**
 * The reserve above our own limit, since V8 may abort the whole process at its limit. Ours is checked every CHECK_MS, in which no
 * function uses so much.
 */
const HEAP_RESERVE_MEGABYTES = 4096;
/** The amount of unused buffers that V8 keeps before it collects them. */
const UNCOLLECTED_MEGABYTES = 64;
/** The time without a response to a ping after which the event loop of the thread is blocked. */
const BLOCKED_MS = 300;
/** The priority, like that of `nice`, of a thread that computes for long: below all others. */
const LOWEST_PRIORITY = 19;

/**
 * Disables an optimization for the whole process. A loop that was optimized while it ran, and calls only V8's own functions, cannot be
 * interrupted: neither could its memory be measured nor the thread be ended. Without the optimization every loop can. It stays on while
 * there are no functions.
 */
const WITHOUT_LOOPS_OPTIMIZED_WHILE_RUNNING = "--no-use-osr";

type Ping = { readonly at: number; readonly cpu: number };

/** One thread with one function. It serves any number of requests at once, until it is retired. */
export class FunctionThread {
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #calls = new Map<number, PendingCall>();
  readonly #ready = Promise.withResolvers<void>();
  /** The number of requests of each caller. */
  readonly #callers = new Map<string, number>();
  #nextId = 0;
  #background = 0;
  #lastEnd: NodeJS.Timeout | null = null;
  #isReady = false;
  #isRetired = false;
  /** The reason why the thread is ended; null while it is not. */
  #reason: HttpError | null = null;
  #ping: Ping | null = null;
  #check: NodeJS.Timeout | null = null;
  #isMeasuring = false;
  #lastUsed = performance.now();
  #memory = NEW_THREAD_BYTES;
  #endedAt = 0;
  #systemId: number | null = null;

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { source, environment, limits } = options;
    const { name, file, importMap, jsx } = source;
    const workerData: ThreadData = { name, entry: pathToFileURL(file).href, importMap, jsx };
    setFlagsFromString(WITHOUT_LOOPS_OPTIMIZED_WHILE_RUNNING);
    this.#worker = new Worker(PROGRAM, {
      name: `function ${name}`,
      workerData,
      env: { ...environment },
      execArgv: [],
      argv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: limits.memoryMegabytes + HEAP_RESERVE_MEGABYTES },
    });
    this.#worker.on("message", (message: ThreadReport) => this.#receive(message));
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", () => {
      this.#end(this.#isReady ? workerFailed() : bootFailed());
      this.#failCalls();
      options.onEnded({ hasStarted: this.#isReady });
    });
    for (const stream of [this.#worker.stdout, this.#worker.stderr])
      stream.on("data", (data: Buffer) => this.#log("info", data.toString().slice(0, 10_000).trimEnd()));
    this.#ready.promise.catch(() => {});
    this.#watch();
    setTimeout(() => {
      if (!this.#isReady) this.#end(bootFailed());
    }, BOOT_MS).unref();
  }

  get isIdle(): boolean {
    return this.#isReady && this.#calls.size === 0 && this.#background === 0;
  }

  /** True if nothing is called, and work after responses had the time that a response may take. */
  get isDispensable(): boolean {
    return this.#isReady && this.#calls.size === 0 && this.#backgroundMs() <= 0;
  }

  /** The time since which nothing was called. */
  get lastUsed(): number {
    return this.#lastUsed;
  }

  /** The bytes of memory in the last measurement. */
  get memory(): number {
    return this.#memory;
  }

  get isStarting(): boolean {
    return !this.#isReady && this.#reason === null;
  }

  get isEnding(): boolean {
    return this.#reason !== null;
  }

  /** True while the thread is ending; false if it cannot be interrupted. */
  get endsSoon(): boolean {
    return this.isEnding && performance.now() - this.#endedAt < LONGEST_END_MS;
  }

  /** Returns true if the thread has requests of the caller. */
  isUsedBy(key: string): boolean {
    return this.#callers.has(key);
  }

  /** Serves a request. Rejects with `CallNotBegun` if another thread can serve it. */
  call(request: FunctionRequest): Promise<GatewayResponse<ResponseBody>> {
    const id = this.#nextId++;
    const { timeoutSeconds } = this.#options.limits;
    const call = functionCall(request, {
      send: (order) => this.#send({ ...order, id } as ThreadOrder),
      timeoutMs: timeoutSeconds * 1000,
      onTimeout: () => this.#timeOut(),
      onDone: () => this.#forget(id, request.share.key),
    });
    this.#calls.set(id, call);
    this.#countCaller(request.share.key, 1);
    this.#watch();
    request.onDisconnect(() => call.abandon());
    this.#ready.promise.then(
      () => call.begin(),
      () => {},
    );
    return call.response;
  }

  /** Ends the thread after its last request, and closes its WebSockets, which have no end of their own. */
  retire(): void {
    this.#markRetired();
    for (const call of [...this.#calls.values()]) call.leave();
    this.#endIfUnused();
  }

  /** Ends the thread at once. */
  async end(): Promise<void> {
    this.#end(workerFailed());
    await this.#worker.terminate();
  }

  endOverLimit(reason: string): void {
    this.#log("error", reason);
    this.#end(workerLimit());
  }

  #send(order: ThreadOrder): void {
    this.#worker.postMessage(order, transferListOf(order));
  }

  #receive(message: ThreadReport): void {
    switch (message.type) {
      case "ready":
        this.#isReady = true;
        this.#systemId = message.systemId;
        this.#ready.resolve();
        this.#options.onFree();
        break;
      case "bootFailed":
        this.#log("error", message.reason);
        this.#end(bootFailed());
        break;
      case "pong":
        this.#ping = null;
        break;
      case "background":
        this.#background = message.count;
        this.#endIfUnused();
        break;
      case "log":
        this.#options.writeLog(message.level, message.text, message.requestId);
        break;
      default:
        this.#calls.get(message.id)?.receive(message);
    }
  }

  /** Ends the thread because of an error that nothing caught, as in Node and on Supabase. */
  #fail(error: unknown): void {
    const isMemory = (error as NodeJS.ErrnoException)?.code === "ERR_WORKER_OUT_OF_MEMORY";
    if (this.#reason === null) this.#log("error", inspect(error));
    this.#end(isMemory ? workerLimit() : this.#isReady ? workerFailed() : bootFailed());
  }

  /** Returns the timeout error: a waiting function exceeds its time, and a computing one exceeds its resources. */
  #timeOut(): HttpError {
    const { timeoutSeconds } = this.#options.limits;
    if (this.#ping && performance.now() - this.#ping.at > BLOCKED_MS) {
      this.#log("error", `did not respond within ${timeoutSeconds} s, and is ended`);
      this.#end(workerLimit());
      return workerLimit();
    }
    this.#log("error", `did not respond within ${timeoutSeconds} s`);
    this.retire();
    return this.#isReady ? idleTimeout(timeoutSeconds) : bootFailed();
  }

  /** Lowers the priority of a thread that computes for long, in favour of the gateway and of other functions. */
  #lowerPriority(): void {
    if (this.#systemId === null) return;
    try {
      setPriority(this.#systemId, LOWEST_PRIORITY);
    } catch {
      // The thread has just ended.
    }
    this.#systemId = null;
  }

  #markRetired(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.#options.onRetired();
  }

  /** Ends the thread; also called after it has ended by itself. */
  #end(reason: HttpError): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#endedAt = performance.now();
    this.#markRetired();
    clearInterval(this.#check ?? undefined);
    this.#check = null;
    this.#ready.reject(reason);
    void this.#worker.terminate();
    // Reports of the thread until its exit still count: requests that it has begun, and their responses.
    setTimeout(() => this.#failCalls(), LONGEST_END_MS).unref();
  }

  #failCalls(): void {
    const reason = this.#reason!;
    const calls = [...this.#calls.values()];
    const isShared = calls.filter(({ hasBegun }) => hasBegun).length > 1;
    for (const call of calls) {
      if (!call.hasBegun) call.fail(new CallNotBegun(reason));
      else call.fail(isShared ? threadEnded() : reason);
    }
  }

  #forget(id: number, key: string): void {
    this.#calls.delete(id);
    this.#countCaller(key, -1);
    this.#lastUsed = performance.now();
    this.#endIfUnused();
    this.#options.onFree();
  }

  #countCaller(key: string, change: 1 | -1): void {
    const count = (this.#callers.get(key) ?? 0) + change;
    if (count === 0) this.#callers.delete(key);
    else this.#callers.set(key, count);
  }

  /** The time that is left for work after the last response; 0 if there is none. */
  #backgroundMs(): number {
    if (this.#background === 0) return 0;
    return this.#lastUsed + 1000 * this.#options.limits.timeoutSeconds - performance.now();
  }

  #endIfUnused(): void {
    if (!this.#isRetired || this.#calls.size > 0 || this.isEnding) return;
    const milliseconds = this.#backgroundMs();
    clearTimeout(this.#lastEnd ?? undefined);
    if (milliseconds <= 0) this.#end(workerFailed());
    else this.#lastEnd = setTimeout(() => this.#endIfUnused(), milliseconds).unref();
  }

  #log(level: LogLevel, text: string): void {
    if (text !== "") this.#options.writeLog(level, text, null);
  }

  /** Checks memory and processor time while the thread has work. */
  #watch(): void {
    this.#check ??= setInterval(() => void this.#measure().catch(() => {}), CHECK_MS).unref();
  }

  async #measure(): Promise<void> {
    if (this.isIdle && this.#check) {
      clearInterval(this.#check);
      this.#check = null;
      this.#ping = null;
      return;
    }
    // The thread answers between two steps of its code, or of its garbage collection.
    if (this.#isMeasuring) return;
    this.#isMeasuring = true;
    try {
      this.#checkUsage(await this.#worker.getHeapStatistics(), await this.#worker.cpuUsage());
    } finally {
      this.#isMeasuring = false;
    }
  }

  #checkUsage(heap: HeapInfo, cpu: NodeJS.CpuUsage): void {
    if (this.#reason !== null) return;
    const { memoryMegabytes, cpuSeconds } = this.#options.limits;
    const used = cpu.user + cpu.system;
    this.#memory = heap.total_physical_size + heap.external_memory;
    const buffers = Math.max(0, heap.external_memory - UNCOLLECTED_MEGABYTES * MEGABYTE);
    if (heap.used_heap_size + buffers > memoryMegabytes * MEGABYTE) {
      this.endOverLimit(`takes more than ${memoryMegabytes} MB of memory, and is ended`);
    } else if (this.#isReady && this.#ping === null) {
      this.#ping = { at: performance.now(), cpu: used };
      this.#send({ type: "ping" });
    } else if (this.#ping && used - this.#ping.cpu >= cpuSeconds * 1e6) {
      this.endOverLimit(`computes for more than ${cpuSeconds} s without a pause, and is ended`);
    }
    if (this.#ping && used - this.#ping.cpu >= BLOCKED_MS * 1000) this.#lowerPriority();
    this.#options.onMeasured();
  }
}
