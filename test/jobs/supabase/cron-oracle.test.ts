import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { chooseAccount, spawnAs } from "../../../cluster/embedded/processes.ts";
import { makeOldCluster, OLD_BINARIES, OLD_MAJOR } from "../../old-cluster.ts";
import { makeSupabaseProject } from "../../supabase-template.ts";
import { until } from "../../until.ts";

const hasCron = existsSync(`/usr/share/postgresql/${OLD_MAJOR}/extension/pg_cron.control`);

/** Schedules and functions of pg_cron 1.4, which has no seconds and no last day of a month. Here `@reboot`, and ranges that end before they begin, are refused. */
const STATEMENTS: readonly string[] = [
  ...[
    "* * * * *",
    "*/5 * * * *",
    "0 0 1 1 *",
    "0 0 1-5 * 1,3",
    "0 0 * JAN-mar sun",
    "5 4 * * 7",
    "  0   0 * * *  ",
    "0\t0 * * *",
    "@hourly",
    "@daily",
    "@midnight",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
    "@Daily",
    "@every 5m",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 13 *",
    "* * * * 8",
    "*/0 * * * *",
    "*/60 * * * *",
    "* * * *",
    "* * * * * *",
    "0 0 * * * sunday",
    "",
    "now",
    "0 0 ? * *",
    "0 0 L * *",
    "1,,2 * * * *",
    "1-10/3 * * * *",
    "5/10 * * * *",
  ].map((schedule) => `select cron.schedule('s', '${schedule}', 'select 1') is not null as made`),
  "select cron.unschedule('s')",
  "select cron.unschedule('s')",
  "select cron.unschedule(4711)",
  "select cron.unschedule(null::text)",
  "select cron.schedule('* * * * *', 'select 1') > 0 as made",
  "select cron.schedule(null, '* * * * *', 'select 1') is not null as made",
  "select cron.schedule('n', null, 'select 1')",
  "select cron.schedule('n', '* * * * *', null)",
  "select cron.schedule('', '* * * * *', 'select 1') > 0 as made",
  "select cron.schedule('twice', '* * * * *', 'select 1') = cron.schedule('twice', '@daily', 'select 2') as same",
  "select cron.schedule(job_name := 'named', schedule := '0 0 * * *', command := 'select 1') > 0 as made",
  "select cron.schedule_in_database('there', '0 0 * * *', 'select 1', current_database(), active := false) > 0 as made",
  "select cron.schedule_in_database('user', '0 0 * * *', 'select 1', current_database(), username := 'nobody_at_all')",
  "select cron.alter_job((select jobid from cron.job where jobname = 'twice'), active := false)",
  "select cron.alter_job((select jobid from cron.job where jobname = 'twice'), schedule := 'nonsense')",
  "select cron.alter_job((select jobid from cron.job where jobname = 'twice'), schedule := '5 5 * * *', command := 'select 3')",
  "select cron.alter_job(4711, active := true)",
  "select cron.schedule_in_database(null, '0 0 * * *', 'select 1', current_database())",
  "select cron.schedule_in_database('x', null, 'select 1', current_database())",
  "select cron.schedule_in_database('x', '0 0 * * *', null, current_database())",
  "select cron.schedule_in_database('x', '0 0 * * *', 'select 1', null) > 0 as made",
  "select cron.schedule_in_database('x', 'nonsense', 'select 1', current_database())",
  "select cron.schedule_in_database('x', '0 0 * * *', 'select 1', 'nowhere')",
  "select cron.alter_job(null, active := true)",
  "select cron.alter_job((select jobid from cron.job where jobname = 'twice'), username := 'nobody_at_all')",
  "select cron.alter_job((select jobid from cron.job where jobname = 'twice'), database := 'nowhere')",
  "select cron.schedule(null, 'select 1')",
  "select cron.schedule('0 0 * * *', null)",
  "select cron.unschedule(null::bigint)",
  'select jobname, schedule, command, nodename, username, active, database = current_database() as here from cron.job order by jobname collate "C" nulls first, schedule',
  "update cron.job set active = true where jobname = 'there' returning active",
  "delete from cron.job where jobname = 'named' returning jobname",
  "select cron.unschedule(jobid) from cron.job where jobname = 'twice'",
  "select count(*)::int from cron.job_run_details",
  `select column_name, is_nullable from information_schema.columns where table_schema = 'cron' and table_name in ('job', 'job_run_details')
     order by table_name, ordinal_position`,
];

/**
 * Statements of a role that is no superuser. Here it may also write its own rows of `cron.job`, because the functions of SQL write as their
 * caller.
 */
const OF_A_USER: readonly string[] = [
  "select cron.schedule('own', '* * * * *', 'select 1') > 0 as made",
  "select cron.schedule('own', 'nonsense', 'select 1')",
  "select cron.schedule('* * * *', 'select 1')",
  "select cron.unschedule('user')",
  "select cron.unschedule('there')",
  "select cron.unschedule(-1)",
  "select jobname, username from cron.job",
  "insert into cron.job_run_details (jobid) values (1)",
  "update cron.job_run_details set status = 'x'",
  "delete from cron.job_run_details",
  "truncate cron.job",
  "select cron.unschedule((select jobid from cron.job where jobname = 'own'))",
  "select cron.unschedule('own')",
];

async function runAll(connectionString: string): Promise<Record<string, unknown>> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const results: Record<string, unknown> = {};
  const run = async (statements: readonly string[]) => {
    for (const statement of statements) {
      const result = await client.query({ text: statement, rowMode: "array" }).then(
        ({ rows }) => rows,
        ({ code, message }: pg.DatabaseError) => ({ code, message }),
      );
      results[`${Object.keys(results).length} ${statement}`] = result;
    }
  };
  await run(STATEMENTS);
  await client.query("create role cron_user; grant usage on schema cron to cron_user; set role cron_user");
  await run(OF_A_USER);
  await client.query("reset role; drop owned by cron_user; drop role cron_user");
  await client.end();
  return results;
}

async function createExtension(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("create extension pg_cron");
  await client.end();
}

test.skipIf(!hasCron)("cron answers as pg_cron does", async () => {
  const folder = await mkdtemp(join(tmpdir(), "cron-"));
  await chmod(folder, 0o755);
  const project = await makeSupabaseProject({ "migrations/1_a.sql": "select 1;" });
  try {
    const data = join(folder, "data");
    await makeOldCluster(data);
    const words = ["-D", data, "-k", data, "-c", "listen_addresses=", "-c", "shared_preload_libraries=pg_cron"];
    const server = await spawnAs(join(OLD_BINARIES, "postgres"), words, await chooseAccount(), data);
    server.stdout!.resume();
    server.stderr!.resume();
    try {
      const url = `postgresql://postgres@localhost/postgres?host=${data}`;
      await until(() =>
        createExtension(url).then(
          () => true,
          () => false,
        ),
      );
      expect(await runAll(project.database.ownerUrl)).toEqual(await runAll(url));
    } finally {
      server.kill("SIGINT");
      await once(server, "close");
    }
  } finally {
    await project.database.drop();
    await rm(folder, { recursive: true });
  }
});
