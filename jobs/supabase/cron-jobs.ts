import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { findDueTimes } from "../cron/cron-times.ts";
import { CronLogins } from "./cron-logins.ts";

export type CronJobOptions = {
  readonly asOwner: AsOwner;
  /** The URL of the owner. */
  readonly url: string;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "warn">;
};

/** Once it is claimed, only this gateway may run it. */
type LateTime = { readonly due: Date; readonly isClaimed: boolean };

type CronJob = {
  readonly jobid: string;
  readonly schedule: string;
  readonly command: string;
  readonly username: string;
};

/** The number that pg_cron runs by default. */
const MAX_RUNNING = 32;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const INSUFFICIENT_PRIVILEGE = "42501";
const LOGIN_HINT = `
HINT:  The command of another role needs a login: give the owner CREATEROLE and ADMIN OPTION of the role, or let the owner run it.`;
const SECONDS = /^\s*(\d+)\s+seconds?\s*$/i;
/** Names of Vixie cron that the library lacks. */
const ALIASES: Readonly<Record<string, string>> = { "@midnight": "@daily", "@annually": "@yearly" };

const READ_JOBS = `
  select jobid, schedule, command, username from cron.job
  where active and database = pg_catalog.current_database() order by jobid`;
/** Only one gateway claims each time of a job. */
const CLAIM_TIME = "insert into cron.due_times (jobid, planned_at) values ($1, $2) on conflict do nothing";
const FORGET_TIMES = "delete from cron.due_times where planned_at < pg_catalog.now() - pg_catalog.interval '1 day'";
const BEGIN_RUN = `
  insert into cron.job_run_details (jobid, job_pid, database, username, command, status, start_time)
  values ($1, $4, pg_catalog.current_database(), $2, $3, 'running', pg_catalog.clock_timestamp())
  returning runid`;
const END_RUN = `
  update cron.job_run_details set status = $2, return_message = $3, end_time = pg_catalog.clock_timestamp() where runid = $1`;
/** A run has the first lock while it runs, and the second one while it waits for that. */
const [RUN_LOCK, WAIT_LOCK] = ["cron.job ", "cron.job.next "];
const TRY_LOCK = "select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1, 0)) as locked";
const UNLOCK = "select pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended($1, 0))";
/** A run whose job has no lock was killed with its gateway. */
const END_KILLED_RUNS = `
  with free as materialized (
    select jobid from (select distinct jobid from cron.job_run_details where status = 'running') as job
    where pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended($1 || jobid, 0)))
  update cron.job_run_details as run
  set status = 'failed', return_message = $2, end_time = pg_catalog.clock_timestamp()
  from free where run.jobid = free.jobid and run.status = 'running'`;
const KILLED_MESSAGE = "ERROR:  the service ended during the run";
const IS_OWNERS = `select session_user = $1 as "isOwners"`;
const IS_ACTIVE = "select from cron.job where jobid = $1 and active";
const WAIT_MS = 1_000;

/**
 * Runs the commands of `cron.job`, each at its times, once over all gateways, and no two runs of a job at once. As in pg_cron, a run
 * that is due during the one before begins after it; at most one of a job waits.
 */
export class CronJobs {
  readonly #options: CronJobOptions;
  readonly #work: RepeatedWork;
  readonly #running = new Set<Promise<void>>();
  readonly #clients = new Set<pg.Client>();
  readonly #logins: CronLogins;
  /** The time up to which all times are processed. */
  #processed = new Date();
  /** The times of jobs that were due while as many commands ran as may, or while no connection could be opened. */
  readonly #late = new Map<string, LateTime>();
  /** The hour of the last cleaning. */
  #cleanedHour = 0;
  #isClosing = false;

  constructor(options: CronJobOptions) {
    this.#options = options;
    this.#logins = new CronLogins(options);
    this.#work = options.supervisor.repeat("cron jobs", () => this.#process(), { pauseMs: 1_000, firstPauseMs: 1 });
  }

  /** Lets commands finish for this long, and then cancels them. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosing = true;
    await this.#work.close();
    const { promise: timeUp, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    await Promise.race([Promise.allSettled([...this.#running]), timeUp]);
    clearTimeout(timer);
    await Promise.all([...this.#clients].map((client) => this.#cancel(client)));
    await Promise.allSettled([...this.#running]);
    await this.#logins.close();
  }

  /** An owner who is no superuser may not cancel the command of another role, whose connection is ended instead. */
  async #cancel(client: pg.Client): Promise<void> {
    const cancelled = this.#options.asOwner((owner) =>
      owner.query("select pg_catalog.pg_cancel_backend($1)", [pidOf(client)]),
    );
    await cancelled.catch(() => client.end().catch(() => {}));
  }

  /** Resolves with the pause until the next possible time of a job: a second, or the next minute. */
  async #process(): Promise<number> {
    const until = new Date();
    const jobs = await this.#options.asOwner(async (client) => {
      const { rows } = await client.query<CronJob>(READ_JOBS);
      const hour = Math.floor(until.getTime() / HOUR_MS);
      if (hour !== this.#cleanedHour) {
        await client.query(FORGET_TIMES);
        await client.query(END_KILLED_RUNS, [RUN_LOCK, KILLED_MESSAGE]);
        this.#cleanedHour = hour;
      }
      return rows;
    });
    for (const id of this.#late.keys()) if (!jobs.some(({ jobid }) => jobid === id)) this.#late.delete(id);
    for (const job of jobs) {
      const due = findDueTime(job.schedule, this.#processed, until);
      const time = due === null ? this.#late.get(job.jobid) : { due, isClaimed: false };
      if (time === undefined) continue;
      if (this.#running.size >= MAX_RUNNING) {
        this.#late.set(job.jobid, time);
        continue;
      }
      const isOurs = time.isClaimed || (await this.#claim(job, time.due));
      this.#late.delete(job.jobid);
      if (isOurs) this.#begin(job, time.due);
    }
    this.#processed = until;
    const isSoon = this.#late.size > 0 || jobs.some(({ schedule }) => SECONDS.test(schedule));
    return isSoon ? 1_000 : MINUTE_MS - (Date.now() % MINUTE_MS) + 5;
  }

  async #claim({ jobid }: CronJob, due: Date): Promise<boolean> {
    const { rowCount } = await this.#options.asOwner((client) => client.query(CLAIM_TIME, [jobid, due]));
    return rowCount === 1;
  }

  #begin(job: CronJob, due: Date): void {
    const run = this.#run(job, due).catch((err: unknown) => {
      this.#options.log.warn({ err, job: job.jobid }, "a cron job could not be run");
    });
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
  }

  /** Runs the job on a connection of its own, because VACUUM refuses a transaction; later, if none can be opened now. */
  async #run(job: CronJob, due: Date): Promise<void> {
    let isConnected = false;
    try {
      await withClient(this.#options.url, async (client) => {
        isConnected = true;
        if (!(await this.#lock(client, job))) return;
        const { rows } = await client.query<{ isOwners: boolean }>(IS_OWNERS, [job.username]);
        if (rows[0]!.isOwners) await this.#runCommand(client, job);
        else await this.#runOfRole(job);
      });
    } catch (error) {
      if (!isConnected && !this.#late.has(job.jobid)) this.#late.set(job.jobid, { due, isClaimed: true });
      throw error;
    }
  }

  /** Waits until no run of the job runs; resolves with false if another one waits already, if the job has ended, or if the service stops. */
  async #lock(client: pg.Client, { jobid }: CronJob): Promise<boolean> {
    const tryLock = async (kind: string) => {
      const { rows } = await client.query<{ locked: boolean }>(TRY_LOCK, [kind + jobid]);
      return rows[0]!.locked;
    };
    if (await tryLock(RUN_LOCK)) return true;
    if (!(await tryLock(WAIT_LOCK))) return false;
    while (!this.#isClosing) {
      await sleep(WAIT_MS);
      if (!(await tryLock(RUN_LOCK))) continue;
      await client.query(UNLOCK, [WAIT_LOCK + jobid]);
      return (await client.query(IS_ACTIVE, [jobid])).rowCount === 1;
    }
    return false;
  }

  /** Runs the command of another role than the owner, which keeps the lock. */
  async #runOfRole(job: CronJob): Promise<void> {
    let hasBegun = false;
    try {
      await withClient(await this.#logins.urlFor(job.username), async (client) => {
        await client.query(`set role ${quotedName(job.username)}`);
        hasBegun = true;
        await this.#runCommand(client, job);
      });
    } catch (error) {
      if (hasBegun) throw error;
      await this.#logins.forget(job.username);
      const { status, message } = failureOf(error);
      const hint = (error as { code?: string }).code === INSUFFICIENT_PRIVILEGE ? LOGIN_HINT : "";
      await this.#end(await this.#beginRun(job, null), { status, message: `${message}${hint}` });
    }
  }

  async #runCommand(client: pg.Client, job: CronJob): Promise<void> {
    this.#clients.add(client);
    try {
      const run = await this.#beginRun(job, pidOf(client));
      // The command may have changed settings and the role, and may have ended its connection.
      await this.#end(run, await runCommand(client, job.command));
    } finally {
      this.#clients.delete(client);
    }
  }

  async #beginRun({ jobid, username, command }: CronJob, pid: number | null): Promise<string> {
    const { rows } = await this.#options.asOwner((owner) =>
      owner.query<{ runid: string }>(BEGIN_RUN, [jobid, username, command, pid]),
    );
    return rows[0]!.runid;
  }

  async #end(runid: string, { status, message }: CronOutcome): Promise<void> {
    await this.#options.asOwner((owner) => owner.query(END_RUN, [runid, status, message]));
  }
}

type CronOutcome = { readonly status: "succeeded" | "failed"; readonly message: string };

function pidOf(client: pg.Client): number {
  return (client as pg.Client & { processID: number }).processID;
}

async function runCommand(client: pg.Client, command: string): Promise<CronOutcome> {
  try {
    return { status: "succeeded", message: describeResult(await runDiscardingRows(client, command)) };
  } catch (error) {
    return failureOf(error);
  }
}

function failureOf(error: unknown): CronOutcome {
  return { status: "failed", message: `ERROR:  ${(error as Error).message}` };
}

type CommandResult = pg.QueryResult & { readonly returned: number };

/** Resolves with the result of the last statement and the number of its rows, which are discarded as they come. */
function runDiscardingRows(client: pg.Client, command: string): Promise<CommandResult> {
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  const rowCounts = new Map<unknown, number>();
  // With a listener, and without a callback, rows are not collected.
  const query = new pg.Query(command)
    .on("row", (_row, result) => void rowCounts.set(result, (rowCounts.get(result) ?? 0) + 1))
    .on("error", reject)
    .on("end", (results: pg.QueryResult | pg.QueryResult[]) => {
      const last = [results].flat().at(-1)!;
      resolve(Object.assign(last, { returned: rowCounts.get(last) ?? 0 }));
    });
  client.query(query);
  return promise;
}

/** Returns the result in pg_cron's format: the number of returned rows, or the tag of the command. */
function describeResult(result: CommandResult): string {
  if (!result.command) return "";
  if (result.fields.length > 0) return `${result.returned} row${result.returned === 1 ? "" : "s"}`;
  const count = result.rowCount === null ? "" : ` ${result.rowCount}`;
  return `${result.command}${result.command === "INSERT" ? " 0" : ""}${count}`;
}

/** Returns the last time of the schedule after one time and up to another; null if there is none, or if the schedule is invalid. */
export function findDueTime(schedule: string, after: Date, until: Date): Date | null {
  const seconds = Number(SECONDS.exec(schedule)?.[1] ?? 0);
  if (seconds > 0) {
    const last = Math.floor(until.getTime() / 1000 / seconds) * seconds * 1000;
    return last > after.getTime() ? new Date(last) : null;
  }
  const text = schedule.trim().split(/\s+/).slice(0, 5).join(" ");
  const cron = ALIASES[text.toLowerCase()] ?? text.replace(/^(\S+ \S+) \$ /, "$1 L ");
  try {
    return findDueTimes({ cron, timeZone: "UTC" }, after, until).due.at(-1) ?? null;
  } catch {
    return null;
  }
}
