import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CronJobs } from "../../../jobs/supabase/cron-jobs.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { makeSupabaseProject } from "../../supabase-template.ts";
import { until } from "../../until.ts";
import { startReceiver } from "../webhooks/receiver.ts";

const MIGRATION = `
  create table public.log (id bigint generated always as identity primary key, who text default current_user, at timestamptz default clock_timestamp());
  grant insert on public.log to service_role;
  select cron.schedule('each second', '1 second', 'insert into public.log default values');
  select cron.schedule('fails', '1 second', 'select 1 / 0');
  select cron.schedule('outside a transaction', '1 second', 'vacuum public.log');
  select cron.schedule('slow', '1 second', 'select pg_sleep(30)');
  select cron.schedule('off', '1 second', 'select 1');
  insert into cron.job_run_details (jobid, command, username, status)
    values (cron.schedule('killed', '0 0 1 1 *', 'select 1'), 'select 1', current_user, 'running');
  create schema "Ünit ""A"".b";
  create table "Ünit ""A"".b"."order; lines" ("Id""s" serial, "a b.c" text);
  create function "Ünit ""A"".b"."mark; all"("the row" text) returns void language sql
    as $f$ insert into "Ünit ""A"".b"."order; lines" ("a b.c") values ("the row") $f$;
  select cron.schedule('odd "name"', '1 second', $c$select "Ünit ""A"".b"."mark; all"("the row" => 'it''s; $$')$c$);
  select cron.alter_job((select jobid from cron.job where jobname = 'off'), active => false);
  insert into cron.job (jobname, schedule, command, username) values ('of a role', '1 second', 'insert into public.log default values', 'service_role');`;

const receiver = useFixture(startReceiver);
const project = useFixture(
  () => makeSupabaseProject({ "migrations/20240101000000_jobs.sql": MIGRATION }),
  ({ database }) => database.drop(),
);
const owner = useFixture(() => connect(project.database.ownerUrl));
let service: Service;
beforeAll(async () => {
  service = await serve(project.database, { BASE_SCHEMA: "platform", WEBHOOK_NETWORK: "loopback" });
});
afterAll(() => service?.stop());

async function lastRun(job: string) {
  const { rows } = await owner.query(
    `select detail.status, return_message, username, count(*) over ()::int as runs from cron.job_run_details as detail
     join cron.job using (jobid, username) where jobname = $1 and (detail.status <> 'running' or $1 = 'slow') order by runid desc limit 1`,
    [job],
  );
  return rows[0];
}

describe("cron.job", () => {
  test("commands run at their times as the role of the job, and each run is recorded", async () => {
    await until(async () => (await lastRun("each second"))?.runs >= 2);
    expect(await lastRun("each second")).toMatchObject({
      status: "succeeded",
      return_message: "INSERT 0 1",
      username: "postgres",
    });
    await until(async () => (await lastRun("of a role")) !== undefined);
    const { rows } = await owner.query("select distinct who from log order by 1");
    expect(rows).toEqual([{ who: "postgres" }, { who: "service_role" }]);
  });

  test("a command uses a schema, a table and a function whose names need quotes", async () => {
    await until(async () => (await lastRun('odd "name"')) !== undefined);
    expect(await lastRun('odd "name"')).toMatchObject({ status: "succeeded", return_message: "1 row" });
    const { rows } = await owner.query('select distinct "a b.c" from "Ünit ""A"".b"."order; lines"');
    expect(rows).toEqual([{ "a b.c": "it's; $$" }]);
  });

  test("a command that fails, and one that refuses a transaction, are recorded as pg_cron does", async () => {
    await until(async () => (await lastRun("fails")) && (await lastRun("outside a transaction")));
    expect(await lastRun("fails")).toMatchObject({ status: "failed", return_message: "ERROR:  division by zero" });
    expect(await lastRun("outside a transaction")).toMatchObject({ status: "succeeded", return_message: "VACUUM" });
  });

  test("a job does not run while its last run goes on, nor when it is inactive or unscheduled", async () => {
    const before = (await lastRun("each second")).runs;
    await until(async () => (await lastRun("each second")).runs > before + 1);
    expect(await lastRun("slow")).toMatchObject({ status: "running", runs: 1 });
    expect(await lastRun("off")).toBeUndefined();
    await owner.query("select cron.unschedule('slow')");
  });

  test("a run that went on when its gateway was killed has failed", async () => {
    await until(async () => (await lastRun("killed"))?.status === "failed");
    expect(await lastRun("killed")).toMatchObject({
      return_message: "ERROR:  the service ended during the run",
      runs: 1,
    });
  });

  describe("a run that is due during the one before", () => {
    const waits = async (job: number) => {
      const { rows } = await owner.query("select pg_try_advisory_lock(hashtextextended($1, 0)) as taken", [
        `cron.job.next ${job}`,
      ]);
      if (!rows[0].taken) return true;
      await owner.query("select pg_advisory_unlock_all()");
      return false;
    };
    const endedRuns = async (job: number) => {
      const { rows } = await owner.query(
        "select count(*)::int from cron.job_run_details where jobid = $1 and status = 'succeeded'",
        [job],
      );
      return rows[0].count;
    };
    /** Schedules a command that runs until the lock is free, and resolves when its second run waits. */
    const startTwice = async (lock: number) => {
      const { rows } = await owner.query("select cron.schedule($1, '1 second', $2)::int as job", [
        `waits ${lock}`,
        `select pg_advisory_xact_lock(${lock})`,
      ]);
      await until(() => waits(rows[0].job));
      return rows[0].job as number;
    };

    test("begins after it, once, however often it was due", async () => {
      const holder = await connect(project.database.ownerUrl);
      await holder.query("select pg_advisory_lock(71)");
      const job = await startTwice(71);
      await owner.query("select cron.alter_job($1, schedule => '0 0 1 1 *')", [job]);
      await holder.end();
      await until(async () => (await endedRuns(job)) === 2);
      await until(async () => !(await waits(job)));
      expect(await endedRuns(job)).toBe(2);
    });

    test("does not begin if the job has ended by then", async () => {
      const holder = await connect(project.database.ownerUrl);
      await holder.query("select pg_advisory_lock(72)");
      const job = await startTwice(72);
      await owner.query("select cron.alter_job($1, active => false)", [job]);
      await holder.end();
      await until(async () => !(await waits(job)));
      expect(await endedRuns(job)).toBe(1);
    });
  });
});

test("a run that finds no connection is made once there is one", async () => {
  const { database } = await makeSupabaseProject({
    "seed.sql": "select cron.schedule('waits', '1 second', 'select 1')",
  });
  onTestFinished(() => database.drop());
  const warnings: string[] = [];
  const log = { info: () => {}, warn: (_fields: unknown, message?: string) => void warnings.push(message ?? "") };
  await withClient(database.ownerUrl, async (client) => {
    const jobs = new CronJobs({
      asOwner: (work) => work(client),
      get url() {
        return warnings.length === 0 ? "postgres://nobody@127.0.0.1:1/nothing" : database.ownerUrl;
      },
      supervisor: new Supervisor({ log }),
      log,
    });
    await until(() => warnings.length > 0);
    await client.query("select cron.alter_job(jobid, schedule => '0 0 1 1 *') from cron.job");
    const runs = async () => (await client.query("select status from cron.job_run_details")).rows;
    await expect.poll(runs).toContainEqual({ status: "succeeded" });
    await jobs.close(10_000);
  });
});

describe("the command of another role", () => {
  const run = async (command: string) => {
    await owner.query(
      "insert into cron.job (jobname, schedule, command, username) values ('tries', '1 second', $1, 'service_role')",
      [command],
    );
    await until(async () => (await lastRun("tries")) !== undefined);
    await owner.query("delete from cron.job where jobname = 'tries'");
    const { rows } = await owner.query(
      "select status, return_message as message from cron.job_run_details where command = $1 order by runid desc limit 1",
      [command],
    );
    return rows[0];
  };

  test.each([
    "reset role",
    "set role none",
    "set role postgres",
    "set session authorization default",
    "set session authorization postgres",
    "reset all; reset session authorization; set role none",
    "discard all",
    "do $$ begin execute 'set role ' || quote_ident(session_user); end $$",
    "do $$ begin execute 'set session authorization ' || quote_ident(session_user); reset role; end $$",
  ])("gets no right of the owner by %s", async (attempt) => {
    expect((await run(`${attempt}; create table auth.taken ()`)).status).toBe("failed");
    const { rows } = await owner.query("select to_regclass('auth.taken') as taken");
    expect(rows).toEqual([{ taken: null }]);
  });

  test("still commits within itself and runs outside a transaction, as its role", async () => {
    await owner.query("create table public.kept as select 1 as n; alter table public.kept owner to service_role");
    expect(await run("vacuum public.kept")).toEqual({ status: "succeeded", message: "VACUUM" });
    expect(await run("do $$ begin insert into public.kept values (2); commit; end $$")).toMatchObject({
      status: "succeeded",
    });
    expect(await run("select current_user, n from public.kept")).toEqual({ status: "succeeded", message: "2 rows" });
  });

  test("uses a login that ends with the service, and is made again if it is gone", async () => {
    const logins = async () =>
      (await owner.query("select rolname from pg_roles where rolname like 'content\\_service\\_cron\\_%'")).rows;
    const [login] = await logins();
    expect(await run("select 1 as a")).toEqual({ status: "succeeded", message: "1 row" });
    expect(await logins()).toEqual([login]);
    await owner.query(`drop role ${login.rolname}`);
    await until(async () => (await run("select 1 as b")).status === "succeeded");
    await owner.query("create role content_service_cron_old login valid until '2001-01-01'");
    onTestFinished(async () => void (await owner.query("drop role if exists content_service_cron_old")));
    await service.stop();
    expect(await logins()).toEqual([{ rolname: "content_service_cron_old" }]);
    service = await serve(project.database, { BASE_SCHEMA: "platform", WEBHOOK_NETWORK: "loopback" });
    expect(await run("select 1 as c")).toEqual({ status: "succeeded", message: "1 row" });
    expect(await logins()).not.toContainEqual({ rolname: "content_service_cron_old" });
  });

  test("fails with the reason if the role has ended", async () => {
    await owner.query("create role content_service_gone");
    await owner.query(
      "insert into cron.job (jobname, schedule, command, username) values ('gone', '1 second', 'select 1', 'content_service_gone')",
    );
    await owner.query("drop role content_service_gone");
    await until(async () => (await lastRun("gone")) !== undefined);
    await owner.query("delete from cron.job where jobname = 'gone'");
    const { rows } = await owner.query(
      "select return_message from cron.job_run_details where username = 'content_service_gone' order by runid desc limit 1",
    );
    expect(rows[0].return_message).toContain("does not exist");
  });
});

describe("the rows of a command", () => {
  test("are counted, and not kept in memory", async () => {
    const before = process.memoryUsage().heapUsed;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().heapUsed);
    }, 5);
    try {
      await owner.query(
        "select cron.schedule('large', '1 second', $$select repeat('x', 100000) from generate_series(1, 3000)$$)",
      );
      await until(async () => (await lastRun("large")) !== undefined);
      await owner.query("select cron.unschedule('large')");
      const running = "select from cron.job_run_details where command like '%3000%' and status = 'running'";
      await until(async () => (await owner.query(running)).rowCount === 0);
    } finally {
      clearInterval(watch);
    }
    const { rows } = await owner.query(
      "select status, return_message from cron.job_run_details where command like '%3000%' order by runid limit 1",
    );
    expect(rows).toEqual([{ status: "succeeded", return_message: "3000 rows" }]);
    expect(most - before).toBeLessThan(150_000_000);
  });

  test.each([
    ["show server_encoding", "1 row"],
    ["insert into public.log default values returning id", "1 row"],
    ["select 1; select n from generate_series(1, 3) as n", "3 rows"],
    ["select 1; set work_mem = '4MB'", "SET"],
    ["-- nothing", ""],
  ])("%s: are counted for the last statement", async (command, message) => {
    await owner.query("select cron.schedule('counted', '1 second', $1)", [command]);
    await until(async () => (await lastRun("counted")) !== undefined);
    expect(await lastRun("counted")).toMatchObject({ status: "succeeded", return_message: message });
    await owner.query("select cron.unschedule('counted')");
  });
});

describe("net", () => {
  const responseTo = async (request: string) => {
    const find = () => owner.query("select * from net._http_response where id = $1", [request]);
    await until(async () => (await find()).rowCount === 1);
    return (await find()).rows[0];
  };

  test("a request is sent after the commit, and its response is recorded", async () => {
    await owner.query("begin");
    await owner.query(`select net.http_post($1, '{"rolled": "back"}')`, [receiver.url]);
    await owner.query("rollback");
    const { rows } = await owner.query<{ id: string }>(
      `select net.http_post(url := $1, body := '{"id": 1}', params := '{"a": "b c"}', headers := '{"X-Secret": "s"}') as id`,
      [receiver.url],
    );
    expect(await responseTo(rows[0]!.id)).toMatchObject({ status_code: 200, timed_out: false, error_msg: null });
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]).toMatchObject({ headers: { "x-secret": "s", "content-type": "application/json" } });
    const { rows: queued } = await owner.query("select from net.http_request_queue");
    expect(queued).toEqual([]);
    const { rows: collected } = await owner.query("select (net.http_collect_response($1)).status", [rows[0]!.id]);
    expect(collected).toEqual([{ status: "SUCCESS" }]);
  });

  test("credentials in the address are sent as a header", async () => {
    const before = receiver.requests.length;
    const url = receiver.url.replace("://", "://ann:s%40y@");
    const { rows } = await owner.query<{ id: string }>("select net.http_get($1) as id", [url]);
    expect(await responseTo(rows[0]!.id)).toMatchObject({ status_code: 200, error_msg: null });
    const authorization = `Basic ${Buffer.from("ann:s@y").toString("base64")}`;
    expect(receiver.requests.slice(before)).toMatchObject([{ headers: { authorization } }]);
  });

  test("addresses that WEBHOOK_NETWORK does not allow, and those that do not answer, are recorded as errors", async () => {
    const send = async (url: string) =>
      (await owner.query<{ id: string }>("select net.http_get($1) as id", [url])).rows[0]!.id;
    expect(await responseTo(await send("http://169.254.169.254/latest/meta-data"))).toMatchObject({
      status_code: null,
      error_msg: expect.stringContaining("WEBHOOK_NETWORK"),
    });
    expect(await responseTo(await send("http://127.0.0.1:1/"))).toMatchObject({ status_code: null, timed_out: false });
    expect(await responseTo(await send("no address"))).toMatchObject({ error_msg: "URL is malformed" });
  });

  test("requests after the hundredth do not wait for it", async () => {
    const [before, respond] = [receiver.requests.length, receiver.respond];
    const held: ServerResponse[] = [];
    receiver.respond = (response, { path }) => void (path.includes("held") ? held.push(response) : response.end());
    const { rows } = await owner.query<{ id: string }>(
      `select net.http_get($1 || case n when 100 then '?held' else '' end, timeout_milliseconds => case n when 100 then 25000 else 60000 end) as id
       from generate_series(1, 150) as n`,
      [receiver.url],
    );
    const ids = rows.map(({ id }) => id);
    const responses = async () => {
      const found = await owner.query<{ id: string; timed_out: boolean }>(
        "select id, timed_out from net._http_response where id = any ($1) order by created",
        [ids],
      );
      return found.rows;
    };
    await until(async () => (await responses()).length >= 149);
    for (const response of held) response.end();
    await until(async () => (await responses()).length === 150);
    expect((await responses()).at(-1)).toEqual({ id: ids[99], timed_out: false });
    expect(receiver.requests.length - before).toBe(150);
    receiver.respond = respond;
  });

  test("bodies are sent a few at once, and one that is too large is recorded as an error", async () => {
    const respond = receiver.respond;
    const held: ServerResponse[] = [];
    receiver.requests.length = 0;
    receiver.respond = (response) => void held.push(response);
    const sendMegabytes = (megabytes: number) =>
      owner.query<{ id: string }>(
        `select net.queue_request('POST', $1, null, null, convert_to(repeat('x', $2 * 1048576), 'UTF8'), 60000) as id`,
        [receiver.url, megabytes],
      );
    const first = (await sendMegabytes(40)).rows[0]!.id;
    expect(await responseTo(first)).toMatchObject({ error_msg: "The body has more than 33554432 bytes" });
    const ids: string[] = [];
    await owner.query("begin");
    for (let n = 0; n < 5; n++) ids.push((await sendMegabytes(12)).rows[0]!.id);
    await owner.query("commit");
    await until(() => held.length === 2);
    expect((await owner.query("select id from net.http_request_queue order by id")).rows).toEqual(
      ids.slice(2).map((id) => ({ id })),
    );
    receiver.respond = respond;
    for (const response of held) response.end();
    for (const id of ids) expect(await responseTo(id)).toMatchObject({ status_code: 200, error_msg: null });
    expect(receiver.requests.map(({ body }) => body.length)).toEqual(ids.map(() => 12 * 1048576));
    receiver.requests.length = 0;
  });

  test("with SUPABASE_APIS=vault nothing is sent and no job runs", async () => {
    await service.stop();
    service = await serve(project.database, { BASE_SCHEMA: "platform", SUPABASE_APIS: "vault" });
    const runs = (await owner.query("select count(*)::int as runs from cron.job_run_details")).rows[0].runs;
    await owner.query("select net.http_get($1)", [receiver.url]);
    await owner.query("select pg_sleep(1.5)");
    expect((await owner.query("select count(*)::int as runs from cron.job_run_details")).rows).toEqual([{ runs }]);
    expect((await owner.query("select count(*)::int as waiting from net.http_request_queue")).rows).toEqual([
      { waiting: 1 },
    ]);
  });
});
