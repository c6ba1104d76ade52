import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkArchive } from "../../../engine/archive/restore-archive.ts";
import { BACKUP_TASK } from "../../../engine/archive/scheduled-backup.ts";
import { withClient } from "../../../engine/pg-client/with-client.ts";
import { SCHEDULES_TASK } from "../../../engine/tasks/schedules.ts";
import type { Service } from "../../../service.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../../database.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

let source: TestDatabase;
let folder: string;
beforeEach(async () => {
  source = await cloneDatabase("content");
  folder = await mkdtemp(join(tmpdir(), "scheduled-"));
});
afterEach(async () => {
  await source.drop();
  await rm(folder, { recursive: true, force: true });
});

const run = (statement: string, values: unknown[] = []) =>
  withClient(source.ownerUrl, (client) => client.query(statement, values));
/** As graphile-worker's cron does at the scheduled time. */
const queueBackup = () =>
  run("select graphile_worker.add_job($1, queue_name => $1, job_key => $1, max_attempts => 3)", [BACKUP_TASK]);
type Health = { readonly status: string; readonly reason?: string; readonly lastBackup: string | null };
const health = async ({ url }: Service) => (await (await fetch(`${url}/health`)).json()) as Health;
const settings = (directory: string) => ({ BACKUP_SCHEDULE: "30 3 * * *", BACKUP_DIR: directory, BACKUP_KEEP: "2" });

test("scheduled backups are written, can be restored, and replace the oldest ones", async () => {
  await using stack = new AsyncDisposableStack();
  const backups = join(folder, "nightly");
  // Two gateways share the schedule.
  const [service, other] = [await serve(source, settings(backups)), await serve(source, settings(backups))];
  stack.defer(() => service.stop());
  stack.defer(() => other.stop());
  const { rows } = await run("select identifier from graphile_worker._private_known_crontabs");
  expect(rows.map(({ identifier }) => identifier).sort()).toEqual([BACKUP_TASK, SCHEDULES_TASK]);
  expect(await health(service)).toMatchObject({ status: "ok", lastBackup: null });

  await run("create table public.own (id integer)");
  const listBackups = async () =>
    (await readdir(backups).catch(() => [])).filter((name) => name.endsWith(".gz")).sort();
  let files: string[] = [];
  for (const _ of [1, 2, 3]) {
    const before = files.at(-1) ?? "";
    await queueBackup();
    await until(async () => {
      files = await listBackups();
      const { rowCount } = await run("select from graphile_worker.jobs where key = $1", [BACKUP_TASK]);
      return rowCount === 0 && (files.at(-1) ?? "") > before;
    });
    await writeFile(join(backups, "notes.txt"), "not a backup");
  }
  expect(await listBackups()).toHaveLength(2);
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
