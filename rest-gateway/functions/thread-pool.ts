import type { GatewayResponse, HttpError, ResponseBody } from "#http";
import { CallNotBegun, endBody, type FunctionRequest } from "./function-call.ts";
import { type FunctionThread, NEW_THREAD_BYTES, type ThreadEvents } from "./function-thread.ts";
import { bootFailed, functionNotFound, tokenRequired, tooManyFunctions } from "./functions-error.ts";
import type { FunctionSource } from "./functions-folder.ts";

/** The number of threads at once, in one process, if the memory is sufficient. */
const MAX_THREADS = 20;
/**
 * The number of threads that start at once, because loading code uses much of a processor. The next one is that of the caller with the
 * fewest threads.
 */
const MAX_STARTING = 2;
/** The part of all threads in which one caller may have requests at once. */
const PARTS = { stranger: 1 / 4, account: 1 / 2 } as const;
/** The time that a request waits for a thread, and the number of requests that may wait, in total and per caller. */
const WAIT_MS = 10_000;
const MAX_WAITING = 500;
const MAX_WAITING_OF_CALLER = 100;
/** The number of threads that may end before they begin a request. */
const MAX_ATTEMPTS = 3;
/** The time in which a file that failed to load is not loaded again. */
const FAILED_MS = 1_000;
const MEGABYTE = 2 ** 20;
/** The memory above which an unused thread is ended, since V8 does not return the memory of a heap that has grown. */
const LARGE_BYTES = 64 * MEGABYTE;

type Response = GatewayResponse<ResponseBody>;

type PoolOptions = {
  readonly totalMegabytes: number;
  /** Returns the function as its files describe it now; null if there is none. */
  readonly find: (name: string) => FunctionSource | null;
  readonly start: (source: FunctionSource, events: ThreadEvents) => FunctionThread;
};

type WaitingCall = {
  readonly source: FunctionSource;
  readonly request: FunctionRequest;
  readonly begin: (response: Promise<Response>) => void;
  readonly refuse: (error: HttpError) => void;
};

/** The threads of all functions of a process: their number, their memory, and which caller has how many of them. */
export class ThreadPool {
  readonly #totalBytes: number;
  readonly #maxThreads: number;
  readonly #find: PoolOptions["find"];
  readonly #start: PoolOptions["start"];
  /** The threads that accept requests, by the name of their function. */
  readonly #current = new Map<string, FunctionThread>();
  /** All threads that have memory, including those that are ending. */
  readonly #all = new Set<FunctionThread>();
  readonly #failed = new Map<string, number>();
  #waiting: readonly WaitingCall[] = [];
  #isClosed = false;

  constructor({ totalMegabytes, find, start }: PoolOptions) {
    this.#totalBytes = totalMegabytes * MEGABYTE;
    this.#maxThreads = Math.min(MAX_THREADS, Math.max(1, Math.floor(this.#totalBytes / NEW_THREAD_BYTES)));
    this.#find = find;
    this.#start = start;
  }

  /**
   * Serves a request that was authorized for the function as it was then. If a thread ends before it begins the request, another thread
   * gets it.
   */
  async call(source: FunctionSource, request: FunctionRequest): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await (this.#tryToBegin(source, request) ?? this.#wait(source, request));
      } catch (error) {
        const reason = error instanceof CallNotBegun ? error.reason : null;
        if (reason && reason.code !== bootFailed().code && attempt < MAX_ATTEMPTS && !this.#isClosed) continue;
        endBody(request);
        throw reason ?? error;
      }
    }
  }

  /** Retires all threads. Requests in flight end with the code that they began with. */
  retireAll(): void {
    this.#failed.clear();
    for (const thread of [...this.#current.values()]) thread.retire();
  }

  /** Ends threads that are idle for this long or have much memory, and so returns their memory. */
  retireIdle(idleMs: number): void {
    const since = performance.now() - idleMs;
    for (const thread of this.#dispensable()) {
      if (thread.isIdle && (thread.lastUsed <= since || thread.memory > LARGE_BYTES)) thread.retire();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { refuse } of this.#waiting) refuse(bootFailed());
    await Promise.all([...this.#all].map((thread) => thread.end()));
  }

  /** Begins the request; null if the caller has its share of threads, or there is no room for another one. */
  #tryToBegin(source: FunctionSource, request: FunctionRequest): Promise<Response> | null {
    const { key } = request.share;
    const current = this.#find(source.name);
    if (!current) return Promise.reject(functionNotFound());
    if (current.verifiesToken && !source.verifiesToken) return Promise.reject(tokenRequired());
    const running = this.#current.get(source.name);
    if (!running?.isUsedBy(key) && this.#threadsOf(key) >= this.#shareOf(request)) return null;
    if (running) return running.call(request);
    if (this.#isClosed || (this.#failed.get(source.name) ?? 0) > performance.now()) return Promise.reject(bootFailed());
    if ([...this.#all].filter(({ isStarting }) => isStarting).length >= MAX_STARTING) return null;
    if (this.#hasRoom()) return this.#startThread(current).call(request);
    this.#makeRoom();
    return null;
  }

  #startThread(source: FunctionSource): FunctionThread {
    const { name } = source;
    const thread = this.#start(source, {
      onRetired: () => {
        if (this.#current.get(name) === thread) this.#current.delete(name);
      },
      onEnded: ({ hasStarted }) => {
        this.#all.delete(thread);
        if (!hasStarted) this.#failed.set(name, performance.now() + FAILED_MS);
        this.#beginWaiting();
      },
      // This is also called while a request begins whose client has left.
      onFree: () => queueMicrotask(() => this.#beginWaiting()),
      onMeasured: () => this.#keepWithinMemory(),
    });
    this.#current.set(name, thread);
    this.#all.add(thread);
    return thread;
  }

  #wait(source: FunctionSource, request: FunctionRequest): Promise<Response> {
    const { key } = request.share;
    const ofCaller = this.#waiting.filter((each) => each.request.share.key === key).length;
    if (this.#waiting.length >= MAX_WAITING || ofCaller >= MAX_WAITING_OF_CALLER) throw tooManyFunctions();
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const leave = () => {
      clearTimeout(tooLate);
      this.#waiting = this.#waiting.filter((each) => each !== call);
    };
    const call: WaitingCall = {
      source,
      request,
      begin: (response) => {
        leave();
        resolve(response);
      },
      refuse: (error) => {
        leave();
        reject(error);
      },
    };
    const tooLate = setTimeout(() => call.refuse(tooManyFunctions()), WAIT_MS);
    request.onDisconnect(() => call.refuse(tooManyFunctions()));
    this.#waiting = [...this.#waiting, call];
    return promise;
  }

  /** Begins waiting requests: those of callers with the fewest threads first, and then those that have waited longest. */
  #beginWaiting(): void {
    if (this.#waiting.length === 0) return;
    const threadsOf = new Map<string, number>();
    for (const { request } of this.#waiting) threadsOf.set(request.share.key, this.#threadsOf(request.share.key));
    const order = this.#waiting.toSorted(
      (one, other) => threadsOf.get(one.request.share.key)! - threadsOf.get(other.request.share.key)!,
    );
    for (const { source, request, begin } of order) {
      const response = this.#tryToBegin(source, request);
      if (response) begin(response);
    }
  }

  #threadsOf(key: string): number {
    return [...this.#all].filter((thread) => thread.isUsedBy(key)).length;
  }

  #shareOf({ share }: FunctionRequest): number {
    return Math.max(1, Math.floor(this.#maxThreads * PARTS[share.caller]));
  }

  #hasRoom(): boolean {
    if (this.#all.size === 0) return true;
    return this.#all.size < this.#maxThreads && memoryOf(this.#all) + NEW_THREAD_BYTES <= this.#totalBytes;
  }

  /**
   * Ends the thread that has not been used for longest; if memory is short, the largest one. A waiting request
   * begins when it has ended.
   */
  #makeRoom(): void {
    if ([...this.#all].some(({ endsSoon }) => endsSoon)) return;
    if (this.#all.size >= this.#maxThreads) this.#dispensable()[0]?.retire();
    else this.#keepWithinMemory(NEW_THREAD_BYTES);
  }

  /** Ends threads until the memory is within the limit, unused ones first. `added` is the memory that another thread needs. */
  #keepWithinMemory(added = 0): void {
    const staying = [...this.#all].filter(({ isEnding }) => !isEnding);
    let excess = memoryOf(staying) + added - this.#totalBytes;
    for (const thread of this.#dispensable()) {
      if (excess <= 0) return;
      excess -= thread.memory;
      thread.retire();
    }
    if (excess <= 0) return;
    const [largest] = staying.sort((one, other) => other.memory - one.memory);
    // Small threads are not ended in favour of another one.
    if (added > 0 && largest!.memory < 2 * added) return;
    largest?.endOverLimit(`takes most of the ${this.#totalBytes / MEGABYTE} MB that functions share, and is ended`);
  }

  /** The threads that may end in favour of others, the one that was used longest ago first. */
  #dispensable(): readonly FunctionThread[] {
    return [...this.#current.values()]
      .filter(({ isDispensable }) => isDispensable)
      .sort((one, other) => one.lastUsed - other.lastUsed);
  }
}

function memoryOf(threads: Iterable<FunctionThread>): number {
  return [...threads].reduce((sum, { memory }) => sum + memory, 0);
}
