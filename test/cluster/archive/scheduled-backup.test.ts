import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkArchive } from "../../../cluster/archive/restore-archive.ts";
import { BACKUP_TASK, ScheduledBackup } from "../../../cluster/archive/scheduled-backup.ts";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../../database.ts";
import { startGateway } from "../../program.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

let source: TestDatabase;
let owner: pg.Client;
let folder: string;
beforeEach(async () => {
  source = await cloneDatabase("empty");
  owner = new pg.Client({ connectionString: source.ownerUrl });
  await owner.connect();
  folder = await mkdtemp(join(tmpdir(), "scheduled-"));
});
afterEach(async () => {
  await owner.end();
  await source.drop();
  await rm(folder, { recursive: true, force: true });
});

const run = (statement: string, values?: unknown[]) => owner.query(statement, values);
/** Queues a backup like graphile-worker's cron at the scheduled time. */
const queueBackup = () => {
  const log = { info: () => {}, error: () => {} };
  const asOwner = () => Promise.reject(new Error("Only its cron item is read."));
  const { task, options } = new ScheduledBackup({
    url: "",
    asOwner,
    schedule: "",
    directory: "",
    keep: 1,
    check: null,
    log,
  }).cron;
  return run("select graphile_worker.add_job($1, queue_name => $2, job_key => $3, max_attempts => $4)", [
    task,
    options?.queueName ?? null,
    options?.jobKey ?? null,
    options?.maxAttempts ?? null,
  ]);
};
const listBackups = async (directory: string) =>
  (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".gz")).sort();
/** Backups wait for the end of this transaction. */
const lockTable = async () => {
  const client = new pg.Client({ connectionString: source.ownerUrl });
  await client.connect();
  await client.query("begin; create table public.locked (id integer); commit; begin; lock table public.locked");
  return client;
};
const isWaiting = async () =>
  (await run("select from pg_locks where not granted and relation = 'public.locked'::regclass")).rowCount === 1;
type Metric = { readonly name: string; readonly values: readonly { readonly value: number }[] };
type Health = {
  readonly status: string;
  readonly reason?: string;
  readonly lastBackup: string | null;
  readonly lastBackupCheck?: string | null;
};
const health = async ({ url }: Service) => (await (await fetch(`${url}/health`)).json()) as Health;
const settings = (directory: string) => ({
  BASE_SCHEMA: "none",
  BACKUP_SCHEDULE: "30 3 * * *",
  BACKUP_DIR: directory,
  BACKUP_KEEP: "2",
});

test("scheduled backups are written, can be restored, and replace the oldest ones", async () => {
  await using stack = new AsyncDisposableStack();
  const backups = join(folder, "nightly");
  // Two gateways share the schedule.
  const [service, other] = [await serve(source, settings(backups)), await serve(source, settings(backups))];
  stack.defer(() => service.stop());
  stack.defer(() => other.stop());
  const { rows } = await run("select identifier from graphile_worker._private_known_crontabs");
  expect(rows.map(({ identifier }) => identifier)).toEqual([BACKUP_TASK]);
  expect(await health(service)).toMatchObject({ status: "ok", lastBackup: null });

  await run("create table public.own (id integer)");
  let files: string[] = [];
  for (const _ of [1, 2, 3]) {
    const before = files.at(-1) ?? "";
    await queueBackup();
    await until(async () => {
      files = await listBackups(backups);
      const { rowCount } = await run("select from graphile_worker.jobs where key = $1", [BACKUP_TASK]);
      return rowCount === 0 && (files.at(-1) ?? "") > before;
    });
    await writeFile(join(backups, "notes.txt"), "not a backup");
  }
  expect(await listBackups(backups)).toHaveLength(2);
  expect(await readdir(backups)).toHaveLength(3);
  const newest = join(backups, files.at(-1)!);
  expect((await stat(newest)).mode & 0o777).toBe(0o600);
  expect((await stat(backups)).mode & 0o777).toBe(0o700);
  const writtenAt = (await stat(newest)).mtime.toISOString();
  // The other gateway reads it within seconds.
  for (const gateway of [service, other]) await until(async () => (await health(gateway)).lastBackup === writtenAt);
  expect(await health(other)).toEqual({ status: "ok", lastBackup: writtenAt });

  const target = await cloneDatabase("empty");
  stack.defer(() => target.drop());
  const rootUrl = urlOf("postgres", "postgres");
  const { tables } = await checkArchive(newest, { url: target.ownerUrl, shadowUrl: "", rootUrl, histories: [] });
  expect(tables.map(({ table }) => table)).toContain('"public"."own"');
});

test("a scheduled backup that fails deletes none, and is reported by every gateway until one succeeds", async () => {
  await using stack = new AsyncDisposableStack();
  const kept = [
    "backup-2020-01-01T00-00-00-000Z.gz",
    "backup-2020-01-02T00-00-00-000Z.gz",
    "backup-2020-01-03T00-00-00-000Z.gz",
  ];
  for (const name of kept) await writeFile(join(folder, name), "");
  const services = [await serve(source, settings(folder)), await serve(source, settings(folder))];
  for (const service of services) stack.defer(() => service.stop());
  await run("create conversion public.odd for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1");
  await queueBackup();
  const failed = { status: "degraded", reason: "The last scheduled backup failed." };
  for (const service of services) await until(async () => (await health(service)).reason === failed.reason);
  expect(await readdir(folder)).toEqual(kept);
  expect(await health(services[0]!)).toMatchObject(failed);

  await run("drop conversion public.odd");
  await queueBackup();
  for (const service of services) await until(async () => (await health(service)).status === "ok");
  expect(await readdir(folder)).toEqual([kept[2], expect.stringMatching(/^backup-20[3-9]|^backup-202[5-9]/)]);
});

test("a backup that cannot be restored replaces none that can if backups are checked, and every gateway reports it", async () => {
  await using stack = new AsyncDisposableStack();
  const checked = { ...settings(folder), BACKUP_KEEP: "1", BACKUP_CHECK: "on", ADMIN_PORT: "0" };
  const services = [await serve(source, checked), await serve(source, checked)];
  for (const service of services) stack.defer(() => service.stop());
  expect(await health(services[0]!)).toEqual({ status: "ok", lastBackup: null, lastBackupCheck: null });
  await queueBackup();
  for (const service of services) await until(async () => (await health(service)).lastBackupCheck !== null);
  const [backup, mark] = await readdir(folder);
  expect(mark).toBe(`${backup}.checked`);

  await run(
    `create table public.own (id integer);
     insert into public.own values (1);
     create function public.is_here() returns boolean language sql immutable return current_database() = '${source.name}';
     alter table public.own add constraint only_here check (public.is_here())`,
  );
  await queueBackup();
  const reason = "The last scheduled backup could not be restored.";
  for (const service of services) await until(async () => (await health(service)).reason === reason);
  expect(await health(services[0]!)).toMatchObject({ status: "degraded" });
  // The next attempt may be under way.
  const files = (await readdir(folder)).filter((name) => !/unchecked/.test(name));
  expect(files).toEqual([backup, mark, expect.stringMatching(/\.rejected$/)]);
  const metrics = (await services[1]!.operations.measure()).flat() as readonly Metric[];
  const metric = (name: string) => metrics.find((each) => each.name.endsWith(name))?.values[0]?.value;
  expect(metric("backup_check_failing")).toBe(1);
  expect(metric("backup_check_last_success_timestamp_seconds")).toBeGreaterThan(1_000_000_000);

  await run("alter table public.own drop constraint only_here");
  await queueBackup();
  // An attempt that began before may end first.
  await until(async () => {
    const [next, nextMark, ...others] = await readdir(folder);
    return next !== backup && nextMark === `${next}.checked` && others.length === 0;
  });
  for (const service of services) await until(async () => (await health(service)).status === "ok");
  expect((await run("select from pg_database where datname = $1", [`${source.name}_shadow`])).rowCount).toBe(0);
});

test("a scheduled backup does not wait for one whose process was killed", async () => {
  await using stack = new AsyncDisposableStack();
  const killed = await startGateway(source, settings(folder));
  stack.defer(() => killed.kill());
  const locking = await lockTable();
  stack.defer(() => locking.end());
  await queueBackup();
  await until(isWaiting);
  await killed.kill();
  await locking.query("commit");
  const service = await serve(source, settings(folder));
  stack.defer(() => service.stop());
  await queueBackup();
  await expect.poll(async () => (await listBackups(folder)).length === 1).toBe(true);
});

test("a scheduled backup is postponed while another one is in progress, and deletes nothing of it", async () => {
  await using stack = new AsyncDisposableStack();
  for (const _ of [1, 2]) {
    const service = await serve(source, settings(folder));
    stack.defer(() => service.stop());
  }
  const locking = await lockTable();
  stack.defer(() => locking.end());
  await queueBackup();
  await until(isWaiting);
  await queueBackup();
  const postponed = "from graphile_worker.jobs where key = $1 and locked_at is null and run_at > now()";
  await until(async () => (await run(`select ${postponed}`, [BACKUP_TASK])).rowCount === 1);
  expect(await isWaiting()).toBe(true);
  expect(await readdir(folder)).toEqual([expect.stringMatching(/\.part$/)]);
  await locking.query("commit");
  await until(
    async () =>
      (await run("select from graphile_worker.jobs where task_identifier = $1", [BACKUP_TASK])).rowCount === 1,
  );
  expect(await listBackups(folder)).toHaveLength(1);
  await run(
    "select graphile_worker.reschedule_jobs(array[id], run_at => now()) from graphile_worker.jobs where key = $1",
    [BACKUP_TASK],
  );
  await until(
    async () =>
      (await run("select from graphile_worker.jobs where task_identifier = $1", [BACKUP_TASK])).rowCount === 0,
  );
  expect(await readdir(folder)).toEqual([1, 2].map(() => expect.stringMatching(/\.gz$/)));
});
