import { mkdir, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runningCluster } from "../../../cluster/embedded/cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { type Program, startReady, stopped } from "../../program.ts";
import { until } from "../../until.ts";
import { runCommand, runCommandWith, runWithoutDatabase } from "./run-command.ts";

const root = useFolder("restore-at-", 0o755);

const settings = (name: string) => ({
  DATA_DIR: join(root, name),
  BACKUP_DIR: join(root, "backups"),
  BACKUP_WAL: "on",
  BACKUP_WAL_RESERVE_MB: "0",
  BASE_SCHEMA: "platform",
});
const command = (name: string, ...args: readonly string[]) => runWithoutDatabase(name, args, settings("data"));
const query = async (statement: string, name = "data") => {
  const url = await runningCluster({ dataDir: join(root, name) });
  return (await withClient(url!("postgres", "content"), (client) => client.query(statement))).rows;
};
const recoverable = async ({ url }: Program) => {
  const { recoverable: range } = (await (await fetch(`${url}/health`)).json()) as {
    recoverable: { from: string; to: string } | null;
  };
  return range;
};
const serverTime = async (name?: string) =>
  ((await query("select clock_timestamp() as now", name))[0] as { now: Date }).now;

test("a deleted row is there again as of a time before, although the service was killed, and earlier keys are accepted", async () => {
  await using stack = new AsyncDisposableStack();
  const killed = await startReady(settings("data"));
  stack.defer(() => killed.kill());
  await until(async () => (await recoverable(killed)) !== null);
  await query(`create table public.notes (id int primary key, body text);
    insert into public.notes select n, 'note ' || n from generate_series(1, 100) as n`);
  const before = await serverTime();
  await query("delete from public.notes where id = 42; insert into public.notes values (1000, 'later')");
  await until(async () => new Date((await recoverable(killed))!.to) > before);
  await killed.kill();

  // A killed restore leaves such a folder.
  await mkdir(join(root, "restored.incomplete/postgres/base"), { recursive: true });
  const at = before.toISOString();
  const restored = await runCommandWith("restore", ["--at", at, "--into", join(root, "restored")], settings("data"));
  expect(restored).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`as of ${at} is restored in ${root}/restored`),
  });
  expect(restored.stdout).toContain(`DATA_DIR=${root}/restored`);
  expect(await command("restore", "--at", at, "--into", join(root, "restored"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("exists and is not empty"),
  });
  const keys = (await command("keys")).stdout.match(/eyJ[\w.-]+/g)!;
  const service = await startReady(settings("restored"));
  stack.defer(() => service.kill());
  const found = "select id from public.notes where id in (42, 1000)";
  expect(await query(found, "restored")).toEqual([{ id: 42 }]);
  expect(keys.length).toBeGreaterThan(0);
  for (const key of keys) {
    expect((await fetch(`${service.url}/rest/v1/`, { headers: { apikey: key } })).status).toBe(200);
  }
  // The copy has an archive of its own.
  await until(async () => (await recoverable(service)) !== null);
  expect(await readdir(join(root, "backups/wal"))).toHaveLength(2);
  expect(await stopped(service, "SIGTERM")).toBe(0);

  // In the database that goes on, only the row is restored.
  const table = await command("restore", "--table", "notes", "--at", at, "--apply");
  expect(table.stdout).toContain("1 missing here, 0 different, 1 only here (they stay)");
  expect(table.stdout).toContain("1 row is inserted");
  expect((await command("sql", `${found} order by id`)).stdout).toMatch(/42\s+1000/);

  const listed = await command("restore", "--list");
  expect(listed.stdout.split("\n").filter((line) => line.includes(`, of ${root}/data)`))).toHaveLength(1);
  const archive = /\(\d+ base backups, (\S+), of /.exec(listed.stdout)![1]!;
  expect(await command("restore", "--check", "--at", "latest")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("are undamaged"),
  });
  const [base] = await readdir(join(archive, "base"));
  await flipByte(join(archive, "base", base!, "base.tar.gz"));
  expect(await command("restore", "--check", "--at", "latest")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/base backup .* cannot be read/),
  });
  expect(await readdir(root)).toEqual(["backups", "data", "restored"]);
});

test("rows of all tables that were deleted or overwritten since a time are found beside the running service, and come back", async () => {
  await using stack = new AsyncDisposableStack();
  const service = await startReady(settings("lost"));
  stack.defer(() => service.kill());
  await until(async () => (await recoverable(service)) !== null);
  await query(
    `create table public.notes (id int primary key, body text); insert into public.notes select n, 'note ' || n from generate_series(1, 100) as n;
     alter table public.notes add column doc json; update public.notes set doc = e'{\n}' where id = 1;
     create table public.cards (note int references public.notes on delete cascade, tag text, primary key (note, tag));
     insert into public.cards values (1, 'red'); create table public.gone (); create table public.same (line text); insert into public.same values ('a')`,
    "lost",
  );
  const at = (await serverTime("lost")).toISOString();
  await query(
    "delete from public.notes where id = 1; update public.notes set body = 'changed' where id = 2; drop table public.gone; create table public.later ()",
    "lost",
  );
  expect(await runWithoutDatabase("restore", ["--lost"], settings("lost"))).toMatchObject({ code: 2 });
  const lost = (...args: readonly string[]) =>
    runWithoutDatabase("restore", ["--lost", "--at", at, ...args], settings("lost"));
  const lines = (await lost("--json")).stdout.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    expect.arrayContaining([
      { table: '"public"."notes"', missing: { id: 1, body: "note 1", doc: {} } },
      { table: '"public"."notes"', different: { key: { id: 2 }, changed: { body: ["changed", "note 2"] } } },
      { table: '"public"."cards"', missing: { note: 1, tag: "red" } },
      { table: '"public"."notes"', rows: { missing: 1, different: 1, onlyHere: 0 } },
      { table: '"public"."same"', rows: { missing: 0, different: 0, onlyHere: 0 } },
      { table: '"public"."gone"', isDropped: true },
    ]),
  );
  const applied = await lost("--apply", "--overwrite");
  expect(applied.stdout).toContain('"public"."gone" is dropped');
  expect(applied.stdout).toContain("1 of 3 tables are as they were.\n2 rows are inserted and 1 overwritten.");
  expect(applied.stdout).not.toContain('"public"."same"');
  expect(
    await query(
      "select id, body, tag from public.notes left join public.cards on note = id where id < 3 order by id",
      "lost",
    ),
  ).toEqual([
    { id: 1, body: "note 1", tag: "red" },
    { id: 2, body: "note 2", tag: null },
  ]);
});

async function flipByte(file: string): Promise<void> {
  const bytes = await readFile(file);
  const middle = bytes.length >> 1;
  const handle = await open(file, "r+");
  await handle.write(Buffer.from([bytes[middle]! ^ 0xff]), 0, 1, middle);
  await handle.close();
}

test("what cannot be restored is explained", async () => {
  const empty = { DATA_DIR: join(root, "none"), BACKUP_DIR: join(root, "no-backups") };
  const refused = async (...args: readonly string[]) => (await runWithoutDatabase("restore", args, empty)).stderr;
  expect(await refused("--at", "latest")).toContain("There is no WAL archive. Set BACKUP_WAL=true");
  expect(await runWithoutDatabase("restore", ["--at", "soon"], empty)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Specify a time such as"),
  });
  const external = await cloneDatabase("empty");
  try {
    const { stderr, code } = await runCommand("restore", ["--at", "latest"], external);
    expect({ stderr, code }).toEqual({ code: 1, stderr: expect.stringContaining("pgBackRest, WAL-G, Barman") });
  } finally {
    await external.drop();
  }
});
