import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { startCluster } from "../../../cluster/embedded/cluster.ts";
import { listArchives } from "../../../cluster/wal-archive/archive-folder.ts";
import { checkWalArchive } from "../../../cluster/wal-archive/check-wal-archive.ts";
import { WAL_SLOT } from "../../../cluster/wal-archive/open-archive.ts";
import { WalArchiver, type WalArchiverOptions } from "../../../cluster/wal-archive/wal-archiver.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { until } from "../../until.ts";

let folder: string;
const root = useFolder("wal-archiver-", 0o755);
beforeAll(async () => {
  folder = join(root, "wal");
});
const cluster = useFixture(() => startCluster({ dataDir: join(root, "data"), port: null, tell: () => {} }));

const query = async (statement: string) =>
  (await withClient(cluster.url("postgres", "postgres"), (client) => client.query(statement))).rows;
const errors: string[] = [];
const log = {
  info: () => {},
  warn: () => {},
  error: ({ err }: { err: Error }) => void errors.push(err.message),
} as unknown as WalArchiverOptions["log"];
/** Archives while the work runs; Postgres goes on. */
async function archiving(options: Partial<WalArchiverOptions>, work: (archiver: WalArchiver) => Promise<void>) {
  const url = cluster.url("postgres", "postgres");
  const defaults = {
    dataDir: join(root, "data"),
    folder,
    url,
    baseHours: 24,
    keepDays: 7,
    reserveBytes: 0,
    check: null,
    log,
  };
  const archiver = new WalArchiver({ ...defaults, ...options });
  try {
    await work(archiver);
  } finally {
    await archiver.closeWith(async () => {});
  }
}
const reachesNow = async (archiver: WalArchiver) => {
  const now = Date.now();
  await query("select pg_logical_emit_message(true, 'test', '')");
  return until(() => (archiver.state.range?.to.getTime() ?? 0) > now);
};

test("an archive continues after a restart, keeps what is needed, and begins anew after a gap", async () => {
  await archiving({}, async (archiver) => {
    await until(() => archiver.state.range !== null);
    await query("create table public.kept (n int); insert into public.kept values (1)");
    await query("select pg_switch_wal()");
    await reachesNow(archiver);
    expect(archiver.state).toMatchObject({ fault: null, failures: 0 });
  });
  const [first] = await listArchives(folder);
  expect(first!.segments.map(({ state }) => state)).toContain("compressed");

  // This archiver always has a base backup due, and keeps no times.
  let checked = 0;
  const check = async (archive: string) => {
    checked = (await checkWalArchive(archive, join(root, "check"))).tables;
  };
  await archiving({ baseHours: 0, keepDays: 0, check }, async (archiver) => {
    await until(() => archiver.state.lastBase !== null && archiver.state.lastBase > first!.bases[0]!.completedAt);
    await until(() => checked > 0);
    expect(archiver.state.fault).toBeNull();
  });
  const [continued, ...others] = await listArchives(folder);
  expect(others).toEqual([]);
  expect(continued!.folder).toBe(first!.folder);
  expect(continued!.bases).toHaveLength(1);
  expect(continued!.segments[0]!.start > first!.segments[0]!.start).toBe(true);

  await query(`select pg_drop_replication_slot('${WAL_SLOT}')`);
  await archiving({}, (archiver) => until(() => archiver.state.range !== null));
  const archives = await listArchives(folder);
  expect(archives).toHaveLength(2);
  expect(archives[0]!.folder).toBe(first!.folder);
  expect(archives[1]!.bases).toHaveLength(1);
});

test("a disk with too little space pauses archiving, which is reported, and Postgres goes on", async () => {
  errors.length = 0;
  const elsewhere = join(root, "full");
  await archiving({ folder: elsewhere, reserveBytes: Number.MAX_SAFE_INTEGER }, async (archiver) => {
    await until(() => archiver.state.fault !== null);
    expect(archiver.state).toMatchObject({ fault: "WAL is not archived.", range: null });
    expect(await query("select 1 as one")).toEqual([{ one: 1 }]);
  });
  expect(errors).toEqual([expect.stringContaining("BACKUP_WAL_RESERVE_MB")]);
  expect(await readdir(elsewhere).catch(() => [])).toEqual([]);
});
