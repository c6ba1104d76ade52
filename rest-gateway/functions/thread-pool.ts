import type { GatewayResponse, HttpError, ResponseBody } from "#http";
import type { FunctionRequest } from "./function-call.ts";
import { CallNotBegun, type FunctionThread, NEW_THREAD_BYTES, type ThreadEvents } from "./function-thread.ts";
import { bootFailed, tooManyFunctions } from "./functions-error.ts";
import type { FunctionSource } from "./functions-folder.ts";

/** Threads at once, in one process, where memory permits. */
const MAX_THREADS = 20;
/** Loading code takes much of a processor: the next to start is that of the caller with the fewest threads. */
const MAX_STARTING = 2;
/** In which part of all threads one caller may have requests at once. */
const PARTS = { stranger: 1 / 4, account: 1 / 2 } as const;
/** How long a request waits for a thread, and how many may wait, also of one caller. */
const WAIT_MS = 10_000;
const MAX_WAITING = 500;
const MAX_WAITING_OF_CALLER = 100;
/** How many threads may end before they begin a request. */
const MAX_ATTEMPTS = 3;
/** A file that fails to load is not loaded for each request. */
const FAILED_MS = 1_000;
const MEGABYTE = 2 ** 20;
/** An unused thread that takes more is ended, since V8 keeps what a heap has grown by. */
const LARGE_BYTES = 64 * MEGABYTE;

type Response = GatewayResponse<ResponseBody>;

type PoolOptions = {
  readonly totalMegabytes: number;
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
  readonly #start: PoolOptions["start"];
  /** Those that accept requests, by the name of their function. */
  readonly #current = new Map<string, FunctionThread>();
  /** Those that are ended, too, as long as they have memory. */
  readonly #all = new Set<FunctionThread>();
  readonly #failed = new Map<string, number>();
  #waiting: readonly WaitingCall[] = [];
  #isClosed = false;

  constructor({ totalMegabytes, start }: PoolOptions) {
    this.#totalBytes = totalMegabytes * MEGABYTE;
    this.#maxThreads = Math.min(MAX_THREADS, Math.max(1, Math.floor(this.#totalBytes / NEW_THREAD_BYTES)));
    this.#start = start;
  }

  /** A request that a thread did not begin before it ended is sent to another. */
  async call(source: FunctionSource, request: FunctionRequest): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await (this.#tryToBegin(source, request) ?? this.#wait(source, request));
      } catch (error) {
        if (!(error instanceof CallNotBegun)) throw error;
        const isFinal = error.reason.code === bootFailed().code || attempt === MAX_ATTEMPTS || this.#isClosed;
        if (isFinal) throw error.reason;
      }
    }
  }

  /** Requests in flight end with the code that they began with. */
  retireAll(): void {
    this.#failed.clear();
    for (const thread of [...this.#current.values()]) thread.retire();
  }

  /** Ends threads that were not used for a while, and gives back their memory. */
  retireIdle(idleMs: number): void {
    const since = performance.now() - idleMs;
    for (const thread of this.#idle()) if (thread.lastUsed <= since || thread.memory > LARGE_BYTES) thread.retire();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { refuse } of this.#waiting) refuse(bootFailed());
    await Promise.all([...this.#all].map((thread) => thread.end()));
  }

  /** Null if the caller has its share of threads, or there is no room for another one. */
  #tryToBegin(source: FunctionSource, request: FunctionRequest): Promise<Response> | null {
    const { key } = request.share;
    const running = this.#current.get(source.name);
    if (!running?.isUsedBy(key) && this.#threadsOf(key) >= this.#shareOf(request)) return null;
    if (running) return running.call(request);
    if (this.#isClosed || (this.#failed.get(source.name) ?? 0) > performance.now()) return Promise.reject(bootFailed());
    if ([...this.#all].filter(({ isStarting }) => isStarting).length >= MAX_STARTING) return null;
    if (this.#hasRoom()) return this.#startThread(source).call(request);
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
      // Also while a request begins whose client has left.
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

  /** Callers with the fewest threads first, and then the longest wait. */
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
   * The thread that has not been used for longest ends, and for lack of memory the largest one. A request that waits
   * begins when it has ended.
   */
  #makeRoom(): void {
    if ([...this.#all].some(({ endsSoon }) => endsSoon)) return;
    if (this.#all.size >= this.#maxThreads) this.#idle()[0]?.retire();
    else this.#keepWithinMemory(NEW_THREAD_BYTES);
  }

  /** Ends unused threads first. `added` is what another thread needs. */
  #keepWithinMemory(added = 0): void {
    const staying = [...this.#all].filter(({ isEnding }) => !isEnding);
    let excess = memoryOf(staying) + added - this.#totalBytes;
    for (const thread of this.#idle()) {
      if (excess <= 0) return;
      excess -= thread.memory;
      thread.retire();
    }
    if (excess <= 0) return;
    const [largest] = staying.sort((one, other) => other.memory - one.memory);
    // Small threads are ended for no other.
    if (added > 0 && largest!.memory < 2 * added) return;
    largest?.endOverLimit(`takes most of the ${this.#totalBytes / MEGABYTE} MB that functions share, and is ended`);
  }

  /** Oldest first. */
  #idle(): readonly FunctionThread[] {
    return [...this.#current.values()]
      .filter(({ isIdle }) => isIdle)
      .sort((one, other) => one.lastUsed - other.lastUsed);
  }
}

function memoryOf(threads: Iterable<FunctionThread>): number {
  return [...threads].reduce((sum, { memory }) => sum + memory, 0);
}
