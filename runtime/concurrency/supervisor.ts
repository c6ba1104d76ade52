import { AsyncLocalStorage } from "node:async_hooks";
import { retryDelay } from "./retry-delay.ts";

/** Work that runs and can end by itself. */
export type StartedWork = {
  /** Settles when the work has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  stop(): Promise<unknown>;
};

type RepetitionOptions = {
  /** The pause from the end of one run to the next. The work may resolve with another pause. */
  readonly pauseMs: number;
  /** The pause before the first run; the default is 0. */
  readonly firstPauseMs?: number;
  /** A run that takes longer counts as failed; the next one does not wait for it. */
  readonly timeoutMs?: number;
};

/** Work that ran for this time starts again soon, whatever happened before. */
const STEADY_MS = 10_000;
const TIMEOUT_MS = 30_000;

type WorkLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

type RestartWork = (error: unknown) => void;
type RunningWork = { readonly report: WorkReport; readonly restart: RestartWork | null };

/** The work that has started the running code, through promises, timers and sockets. */
const running = new AsyncLocalStorage<RunningWork>();

/** Restarts the work that an unhandled error comes from, for example in a dependency. Returns false if it comes from none. */
export function restartWorkOfUncaught(error: unknown): boolean {
  const work = running.getStore();
  work?.report.failsUncaught(error, work.restart);
  return work !== undefined;
}

/**
 * Supervises the background work of a process: `/health` names the work that does not run, and a metric counts the restarts
 * of each. `keep` is for work that can end, `repeat` for work at intervals, and `report` for work that reconnects by itself.
 */
export class Supervisor {
  readonly #log: WorkLog;
  readonly #reports = new Set<WorkReport>();
  /** The restarts of work that was closed. */
  readonly #earlierRestarts = new Map<string, number>();
  readonly #uncaught = new Map<string, number>();

  constructor({ log }: { readonly log: WorkLog }) {
    this.#log = log;
  }

  /** Returns the names of all work. */
  names(): readonly string[] {
    return namesOf([...this.#reports]);
  }

  /** Returns the names of the work that does not run and is being started again. */
  stopped(): readonly string[] {
    return namesOf([...this.#reports].filter(({ isRunning }) => !isRunning));
  }

  /** Returns the number of restarts of each work. */
  restarts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = Object.fromEntries(this.#earlierRestarts);
    for (const { name, restarts } of this.#reports) counts[name] = (counts[name] ?? 0) + restarts;
    return counts;
  }

  /** Returns the number of unhandled errors of each work. */
  uncaughtErrors(): Readonly<Record<string, number>> {
    return { ...Object.fromEntries(this.names().map((name) => [name, 0])), ...Object.fromEntries(this.#uncaught) };
  }

  /** Reports work that starts again by itself. The name is public. */
  report(name: string): WorkReport {
    const report = new WorkReport(name, this.#log, {
      onUncaught: () => this.#uncaught.set(name, (this.#uncaught.get(name) ?? 0) + 1),
      onClose: () => this.#remove(report),
    });
    this.#reports.add(report);
    return report;
  }

  /** Starts work, and starts it again when it ends. Rejects if the first start fails. */
  async keep(name: string, start: () => Promise<StartedWork>): Promise<KeptWork> {
    const work = new KeptWork(this.report(name), start);
    await work.start();
    return work;
  }

  /** Does work at intervals, at once or after a first pause. */
  repeat(name: string, work: () => Promise<number | undefined>, options: RepetitionOptions): RepeatedWork {
    return new RepeatedWork(this.report(name), work, options);
  }

  #remove(report: WorkReport): void {
    if (!this.#reports.delete(report)) return;
    const { name, restarts } = report;
    this.#earlierRestarts.set(name, (this.#earlierRestarts.get(name) ?? 0) + restarts);
  }
}

function namesOf(reports: readonly WorkReport[]): readonly string[] {
  return [...new Set(reports.map(({ name }) => name))].toSorted();
}

type ReportEvents = { readonly onUncaught: () => void; readonly onClose: () => void };

export class WorkReport {
  readonly name: string;
  readonly #log: WorkLog;
  readonly #events: ReportEvents;
  #isRunning = true;
  #isClosed = false;
  #runningSince = performance.now();
  #restarts = 0;
  #failures = 0;

  constructor(name: string, log: WorkLog, events: ReportEvents) {
    this.name = name;
    this.#log = log;
    this.#events = events;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get restarts(): number {
    return this.#restarts;
  }

  runs(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#runningSince = performance.now();
    this.#restarts++;
    this.#log.info({ work: this.name, attempts: this.#failures }, "background work runs again");
  }

  /** Returns the time until the next attempt, in milliseconds. */
  fails(error: unknown): number {
    if (this.#isRunning && performance.now() - this.#runningSince > STEADY_MS) this.#failures = 0;
    this.#isRunning = false;
    this.#failures++;
    if (this.#failures === 1)
      this.#log.warn({ err: error, work: this.name }, "background work does not run; trying again");
    return this.retryMs;
  }

  /** Begins code that belongs to this work: its unhandled errors call `restart`. If there is none, the work only pauses. */
  run<Result>(begin: () => Result, restart: RestartWork | null = null): Result {
    return running.run({ report: this, restart }, begin);
  }

  failsUncaught(error: unknown, restart: RestartWork | null): void {
    this.#events.onUncaught();
    this.#log.warn({ err: error, work: this.name }, "an uncaught error in background work; starting it again");
    if (this.#isClosed) return;
    if (restart) restart(error);
    else this.pauseFor(error);
  }

  /** Does work that is awaited: an uncaught error of it rejects, and the work counts as stopped for a moment. */
  guard<Result>(work: () => Promise<Result>): Promise<Result> {
    const failed = Promise.withResolvers<never>();
    const restart = (error: unknown) => {
      this.pauseFor(error);
      failed.reject(error);
    };
    return Promise.race([this.run(work, restart), failed.promise]);
  }

  /** Reports an error after which nothing is to be started again: the work counts as stopped for a moment. */
  pauseFor(error: unknown): void {
    setTimeout(() => this.runs(), this.fails(error)).unref();
  }

  /** Does the work and reports how it ends. Work that takes longer counts as failed, and is not waited for. */
  async watch<Result>(work: () => Promise<Result>, timeoutMs = TIMEOUT_MS): Promise<Result> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`It makes no progress for ${timeoutMs} ms`)),
      timeoutMs,
    ).unref();
    let isOver = false;
    // Code that a run has left behind may fail later.
    const restart = (error: unknown) => (isOver ? this.pauseFor(error) : late.reject(error));
    try {
      const result = await Promise.race([this.run(work, restart), late.promise]);
      this.runs();
      return result;
    } catch (error) {
      this.fails(error);
      throw error;
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  /** Does work and waits for it without a limit. It counts as stopped when it takes longer than `withinMs`. */
  async expect<Result>(work: () => Promise<Result>, withinMs: number): Promise<Result> {
    const late = () => this.fails(new Error(`It makes no progress for ${withinMs} ms`));
    const timer = setTimeout(late, withinMs).unref();
    try {
      return await this.run(work);
    } finally {
      clearTimeout(timer);
      this.runs();
    }
  }

  /** The time until the next attempt after the last failure, in milliseconds. */
  get retryMs(): number {
    return retryDelay(this.#failures);
  }

  close(): void {
    this.#isClosed = true;
    this.#events.onClose();
  }
}

export class KeptWork {
  readonly #report: WorkReport;
  readonly #begin: () => Promise<StartedWork>;
  #current: StartedWork | null = null;
  #timer: NodeJS.Timeout | undefined;
  #starting: Promise<void> | null = null;
  #isClosed = false;

  constructor(report: WorkReport, begin: () => Promise<StartedWork>) {
    this.#report = report;
    this.#begin = begin;
  }

  /** Rejects if it cannot be started; it is not started again then. */
  async start(): Promise<void> {
    try {
      await this.#startOnce();
    } catch (error) {
      this.#report.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#starting;
    if (this.#current) await this.#stop(this.#current);
    this.#report.close();
  }

  #stop(work: StartedWork): Promise<unknown> {
    return this.#report.run(() => work.stop());
  }

  async #startOnce(): Promise<void> {
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {});
    const started = this.#report.run(this.#begin, failed.reject);
    // A start that had an uncaught error may hang forever, or end too late.
    const work = await Promise.race([started, failed.promise]).catch((error) => {
      started.then((late) => this.#stop(late)).catch(() => {});
      throw error;
    });
    this.#current = work;
    const onEnd = (error: unknown) => {
      if (this.#isClosed || this.#current !== work) return;
      this.#current = null;
      void this.#stop(work).catch(() => {});
      this.#startLater(error);
    };
    work.ended.then(() => onEnd(new Error("It has ended")), onEnd);
    failed.promise.catch(onEnd);
  }

  #startLater(error: unknown): void {
    if (this.#isClosed) return;
    const delay = this.#report.fails(error);
    this.#timer = setTimeout(() => {
      this.#starting = this.#startAgain();
    }, delay).unref();
  }

  async #startAgain(): Promise<void> {
    try {
      await this.#startOnce();
      this.#report.runs();
    } catch (error) {
      this.#startLater(error);
    }
  }
}

export class RepeatedWork {
  readonly #report: WorkReport;
  readonly #work: () => Promise<number | undefined>;
  readonly #options: Required<RepetitionOptions>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #isRequested = false;
  #isClosed = false;

  constructor(report: WorkReport, work: () => Promise<number | undefined>, options: RepetitionOptions) {
    this.#report = report;
    this.#work = work;
    this.#options = { timeoutMs: TIMEOUT_MS, firstPauseMs: 0, ...options };
    if (this.#options.firstPauseMs === 0) this.soon();
    else this.#runAfter(this.#options.firstPauseMs);
  }

  /** Runs now, or again after the current run. */
  soon(): void {
    this.#isRequested = true;
    if (this.#running || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#running = this.#run();
  }

  /** Resolves when the current run has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
    this.#report.close();
  }

  async #run(): Promise<void> {
    let pause: number;
    do {
      this.#isRequested = false;
      pause = await this.#runOnce();
    } while (this.#isRequested && !this.#isClosed && this.#report.isRunning);
    this.#running = null;
    if (!this.#isClosed) this.#runAfter(pause);
  }

  #runAfter(pause: number): void {
    this.#timer = setTimeout(() => this.soon(), pause).unref();
  }

  /** Resolves with the pause after the run. */
  async #runOnce(): Promise<number> {
    const { pauseMs, timeoutMs } = this.#options;
    try {
      return (await this.#report.watch(this.#work, timeoutMs)) ?? pauseMs;
    } catch {
      return this.#report.retryMs;
    }
  }
}
