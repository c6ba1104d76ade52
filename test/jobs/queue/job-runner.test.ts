import pg from "pg";
import { expect, test } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { startJobRunner } from "../../../jobs/queue/job-runner.ts";
import { openListener } from "../../../postgres/client/listen.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { makeLogger } from "../../../runtime/log/log.ts";
import { cloneDatabase } from "../../database.ts";
import { until } from "../../until.ts";

const log = makeLogger(readConfig({ LOG_LEVEL: "silent" }).config);

type RunnerOptions = Pick<Parameters<typeof startJobRunner>[0], "lanes"> &
  Partial<Parameters<typeof startJobRunner>[0]>;

async function startRunner(url: string, options: RunnerOptions) {
  const listener = openListener({ url, log });
  const nothing = async () => {};
  try {
    const runner = await startJobRunner({ url, listener, maintain: nothing, cancelRunning: nothing, log, ...options });
    return {
      async close() {
        await runner.close(0);
        await listener.close();
      },
    };
  } catch (error) {
    await listener.close();
    throw error;
  }
}

test("a job runner that fails to start leaves no worker that keeps the process alive", async () => {
  const database = await cloneDatabase("content");
  const working = () =>
    withClient(database.ownerUrl, async (client) => {
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int from pg_stat_activity where datname = $1 and application_name = 'jobs'`,
        [database.name],
      );
      return rows[0]!.count;
    });
  let workingThen = 0;
  const tend = async () => {
    workingThen = await working();
    throw new Error("no");
  };
  try {
    const attempt = startRunner(database.ownerUrl, {
      lanes: [
        { name: "first", tasks: { first: () => {} }, concurrency: 4 },
        { name: "second", tasks: { second: () => {} }, concurrency: 1 },
      ],
      maintain: tend,
    });
    await expect(attempt).rejects.toThrow("no");
    expect(workingThen).toBeGreaterThan(0);
    await until(async () => (await working()) === 0);
  } finally {
    await database.drop();
  }
});

const FAULTS: Record<string, (name: string) => readonly { readonly fail: string; readonly repair: string }[]> = {
  "connections are refused": (name) => [
    { fail: `alter database ${name} allow_connections false`, repair: `alter database ${name} allow_connections true` },
    { fail: END_SESSIONS(name), repair: "select" },
  ],
  "the sessions are ended": (name) => [{ fail: END_SESSIONS(name), repair: "select" }],
};
const END_SESSIONS = (name: string) =>
  `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and application_name = 'jobs'`;

test.each(Object.keys(FAULTS))("when %s while a task ends, the queue goes on afterwards", async (fault) => {
  const database = await cloneDatabase("content");
  const steps = FAULTS[fault]!(database.name);
  const done: string[] = [];
  const server = new pg.Client({ connectionString: database.ownerUrl.replace(database.name, "postgres") });
  await server.connect();
  const queue = (task: string) =>
    withClient(database.ownerUrl, (client) => client.query("select graphile_worker.add_job($1)", [task]));
  const tasks = {
    first: async () => {
      if (done.push("first") > 1) return;
      for (const { fail } of steps) await server.query(fail);
    },
    second: () => void done.push("second"),
  };
  const supervisor = new Supervisor({ log });
  const runner = await startRunner(database.ownerUrl, {
    supervisor,
    lanes: [{ name: "callers", tasks, concurrency: 2 }],
  });
  try {
    expect(supervisor.stopped()).toEqual([]);
    await queue("first");
    await until(() => done.includes("first"));
    if (fault === "connections are refused") await until(() => supervisor.stopped().includes("callers"));
    for (const { repair } of steps) await server.query(repair);
    await queue("second");
    await until(() => done.includes("second"));
    expect(supervisor.stopped()).toEqual([]);
  } finally {
    await runner.close();
    await server.end();
    await database.drop();
  }
});

const REFUSALS = { "connections are exhausted": "53300", "of a deadlock": "40P01", "it takes too long": "57014" };

test.each(Object.entries(REFUSALS))(
  "a runner whose tasks cannot be completed, because %s, is started again",
  async (_why, code) => {
    const database = await cloneDatabase("content");
    const done: string[] = [];
    const query = (text: string) => withClient(database.ownerUrl, (client) => client.query(text));
    const tasks = { first: () => void done.push("first"), second: () => void done.push("second") };
    const supervisor = new Supervisor({ log });
    const runner = await startRunner(database.ownerUrl, {
      supervisor,
      lanes: [{ name: "callers", tasks, concurrency: 2 }],
    });
    try {
      await query(`
      create function public.refuse() returns trigger language plpgsql as $$
        begin raise 'too many connections' using errcode = '${code}'; end
      $$;
      create trigger refuse before delete on graphile_worker._private_jobs execute function public.refuse()`);
      await query("select graphile_worker.add_job('first')");
      await until(() => supervisor.restarts().callers! > 0);
      await query("drop function public.refuse cascade");
      await query("select graphile_worker.add_job('second')");
      await expect.poll(() => done.includes("second")).toBe(true);
    } finally {
      await runner.close();
      await database.drop();
    }
  },
);

test("a runner that gets errors instead of tasks is named, and goes on when it gets tasks again", async () => {
  const database = await cloneDatabase("content");
  const supervisor = new Supervisor({ log });
  const done: unknown[] = [];
  const jobs = await startRunner(database.ownerUrl, {
    lanes: [{ name: "first", tasks: { first: async (payload) => void done.push(payload) }, concurrency: 1 }],
    supervisor,
  });
  const query = (sql: string) => withClient(database.ownerUrl, (client) => client.query(sql));
  try {
    await query("alter table graphile_worker._private_jobs rename column run_at to due_at");
    await until(() => supervisor.stopped().includes("first"));
    await query("alter table graphile_worker._private_jobs rename column due_at to run_at");
    await query("select graphile_worker.add_job('first', '{\"number\": 1}')");
    await expect.poll(() => done.length === 1 && supervisor.stopped().length === 0).toBe(true);
  } finally {
    await jobs.close();
    await database.drop();
  }
});
