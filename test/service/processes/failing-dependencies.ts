import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";

/** The query by which a lane of jobs asks the queue for its next job, with the ids of its tasks as the second value. */
const NEXT_JOB = "jobs.job_queue_id";

/**
 * Node loads this into a service before its program. At SIGWINCH, an uncaught error and an unhandled rejection occur in the context of each of these
 * queries that was sent, as if the library that sent it had a fault; at SIGPROF, an error that comes from nowhere.
 */
const QUERIES = [
  NEXT_JOB,
  "pg_notification_queue_usage",
  "START_REPLICATION",
  "content_service.webhook_leases as lease",
];

const contexts = new Map<string, ReturnType<typeof AsyncLocalStorage.snapshot>>();
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (this: pg.Client, ...values: Parameters<typeof query>) {
  const [config] = values as readonly unknown[];
  const { text = "", values: parameters = [] } =
    typeof config === "string" ? { text: config } : (config as pg.QueryConfig);
  const found = QUERIES.find((each) => text.includes(each));
  const key = found === NEXT_JOB ? `${found} ${parameters[1]}` : found;
  if (key) contexts.set(key, AsyncLocalStorage.snapshot());
  return query.apply(this, values);
} as typeof query;

function fail(): void {
  setImmediate(() => {
    throw new Error("A fault of a dependency");
  });
  void Promise.reject(new Error("A fault of a dependency"));
}

process.on("SIGWINCH", () => {
  for (const run of contexts.values()) run(fail);
});
process.on("SIGPROF", () =>
  setImmediate(() => {
    throw new Error("A fault of nobody");
  }),
);
