// Benchmarks a backlog of queued calls: the cost of queueing one, and the rate at which one process runs them.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runMigrations } from "graphile-worker";
import { startProgram } from "./comparison/program.ts";
import { JWT_SECRET } from "./comparison/sign-claims.ts";
import { startContent } from "./graphql/content.ts";
import type { Bench } from "./measuring/kind.ts";
import { processorTimeOf } from "./measuring/processor-time.ts";
import type { Scratch } from "./measuring/scratch.ts";

const TARGET_PER_SECOND = 1_000;
const BATCH = 5_000;
const LOOK_MS = 100;

const SCHEMA = `
  create function public.tick(number integer) returns integer language sql as 'select number';
  grant execute on function public.tick to service_role;`;
const QUEUE = (first: number, last: number) => `
  select api.enqueue_as('service_role', 'public.tick', pg_catalog.jsonb_build_object('number', number))
  from pg_catalog.generate_series(${first}, ${last}) as number`;
const COUNT_DONE = `
  select pg_catalog.count(*)::int as done, pg_catalog.count(*) filter (where attempts > 1)::int as repeated
  from content_service.tasks where status = 'done'`;
/** The query is cheap when a million calls wait. */
const HAS_WAITING =
  "select from content_service.tasks where lane = 'system' and status in ('queued', 'running') limit 1";

export const bench: Bench = async ({ tasks, print }) => {
  print(`queue: ${tasks} calls of a function that does nothing, queued by api.enqueue_as; one process runs them`);
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startContent());
  await scratch.execute(SCHEMA);
  await runMigrations({ connectionString: scratch.url("postgres") });
  const queuedMicroseconds = await queue(scratch, tasks);
  print(`  queued: ${queuedMicroseconds.toFixed(0)} µs each`);

  const postgresBefore = await scratch.processorTime();
  const startedAt = performance.now();
  const gateway = await startProgram({
    name: "gateway",
    command: process.execPath,
    args: [join(import.meta.dirname, "../server.js")],
    env: (PORT) => ({
      PORT,
      DATABASE_URL: scratch.url("authenticator"),
      OWNER_DATABASE_URL: scratch.url("postgres"),
      JWT_SECRET,
      LOG_LEVEL: "warn",
      WEB_CONCURRENCY: "1",
    }),
    dialect: "tables",
    prefix: "/",
  });
  opened.adopt(gateway, () => gateway.stop());
  while ((await scratch.execute(HAS_WAITING)).rowCount) await sleep(LOOK_MS);
  const perSecond = (1_000 * tasks) / (performance.now() - startedAt);
  const processor = { gateway: await processorTimeOf(gateway.pid), postgres: await scratch.processorTime() };
  const each = (time: number | null, before: number | null = 0) =>
    time === null || before === null ? null : (time - before) / tasks;
  const microseconds = { gateway: each(processor.gateway), postgres: each(processor.postgres, postgresBefore) };
  const { done, repeated } = (await scratch.execute(COUNT_DONE)).rows[0] as { done: number; repeated: number };
  print(
    `  run: ${perSecond.toFixed(0)} tasks/s (target: ${TARGET_PER_SECOND}), from the start of the process on; ${microseconds.gateway?.toFixed(0)} µs of its processor time and ${microseconds.postgres?.toFixed(0)} µs of Postgres's each`,
  );
  print(`  lost ${tasks - done}, attempted again ${repeated}`);
  const isMissed = perSecond < TARGET_PER_SECOND || done !== tasks;
  return { tasks, queuedMicroseconds, perSecond, microseconds, lost: tasks - done, repeated, isMissed };
};

/** Returns the microseconds per task. */
async function queue(scratch: Scratch, tasks: number): Promise<number> {
  const startedAt = performance.now();
  for (let first = 1; first <= tasks; first += BATCH)
    await scratch.execute(QUEUE(first, Math.min(tasks, first + BATCH - 1)));
  const microseconds = (1_000 * (performance.now() - startedAt)) / tasks;
  await scratch.execute("vacuum analyze");
  return microseconds;
}
