import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../../../bench/measuring/free-port.ts";
import { type Cluster, type ClusterOptions, runningCluster, startCluster } from "../../../cluster/embedded/cluster.ts";
import { postmasterOf } from "../../postmaster.ts";
import { processesNaming } from "../../processes-naming.ts";
import { REPOSITORY } from "../../repository.ts";
import { until } from "../../until.ts";

const CLUSTER = join(REPOSITORY, "cluster/embedded/cluster.ts");
const NOBODY = 65_534;

/** The folder of a cluster that has run once. */
let before: string;
let root: string;
let dataDir: string;
const running: Cluster[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  before = await mkdtemp(join(tmpdir(), "cluster-before-"));
  await chmod(before, 0o755);
  const cluster = await startCluster({ dataDir: join(before, "data"), port: null, tell: () => {} });
  await cluster.stop();
});
afterAll(() => rm(before, { recursive: true, force: true }));

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "cluster-"));
  await chmod(root, 0o755);
  dataDir = join(root, "data");
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map((cluster) => cluster.stop()));
  await until(async () => (await processesNaming(root)).length === 0);
  await rm(root, { recursive: true, force: true });
});

/** Copies a cluster that has run before: making one takes long, and few tests are about that. */
async function haveCluster(folder = dataDir): Promise<void> {
  await promisify(execFile)("cp", ["-a", join(before, "data"), folder]);
}

async function start(options: Partial<ClusterOptions> = {}): Promise<Cluster> {
  const cluster = await startCluster({ dataDir, port: null, tell: () => {}, ...options });
  running.push(cluster);
  return cluster;
}

async function ask<T>(url: string, text: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query({ text, rowMode: "array" });
    return rows.map(([value]: T[]) => value!);
  } finally {
    await client.end();
  }
}

function spawnHolder(stderr: "pipe" | "inherit"): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, "holder.ts"), dataDir], {
    stdio: ["ignore", "pipe", stderr],
  });
  children.push(child);
  return child;
}

/** A process that holds the cluster and writes; `acknowledged` grows with each row it was promised. */
async function startHolder(): Promise<{ child: ChildProcess; acknowledged: string[] }> {
  const child = spawnHolder("inherit");
  const acknowledged: string[] = [];
  const lines = createInterface({ input: child.stdout! });
  await once(lines, "line");
  lines.on("line", (line) => acknowledged.push(line));
  return { child, acknowledged };
}

describe("startCluster", () => {
  test("the first start creates a cluster, the second one keeps its data", async () => {
    const steps: string[] = [];
    const first = await start({ tell: (step) => steps.push(step) });
    await ask(first.url("postgres", "postgres"), "create table kept as select 42 as answer");
    await first.stop();
    const second = await start({ tell: (step) => steps.push(step) });
    expect(await ask(second.url("postgres", "postgres"), "select answer from kept")).toEqual([42]);
    expect(steps).toEqual(["creating the database cluster"]);
  });

  test("the cluster is Postgres 18 with UTF-8, logical WAL and fsync, on a unix socket only", async () => {
    await haveCluster();
    const { url } = await start();
    const settings = `select setting from pg_settings
      where name in ('server_encoding', 'wal_level', 'fsync', 'listen_addresses', 'max_slot_wal_keep_size') order by name`;
    expect(await ask(url("postgres", "postgres"), settings)).toEqual(["on", "", "1024", "UTF8", "logical"]);
    expect(await ask(url("postgres", "postgres"), "select current_setting('server_version_num')::int / 10000")).toEqual(
      [18],
    );
    expect(
      await ask(url("postgres", "postgres"), "select datlocale from pg_database where datname = 'postgres'"),
    ).toEqual(["C.UTF-8"]);
  });

  test("PG* variables of the shell have no effect", async () => {
    process.env.PGPORT = "1";
    process.env.PGDATA = "/nowhere";
    process.env.LC_ALL = "no_SUCH";
    try {
      const { url } = await start();
      expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
    } finally {
      delete process.env.PGPORT;
      delete process.env.PGDATA;
      delete process.env.LC_ALL;
    }
  });

  test("stopping leaves no process behind", async () => {
    await haveCluster();
    const cluster = await start();
    expect((await processesNaming(dataDir)).length).toBeGreaterThan(0);
    await cluster.stop();
    await until(async () => (await processesNaming(dataDir)).length === 0);
  });

  test("two clusters in two folders run side by side", async () => {
    const second = join(root, "other");
    await Promise.all([haveCluster(), haveCluster(second)]);
    const [one, other] = await Promise.all([start(), start({ dataDir: second })]);
    await ask(one.url("postgres", "postgres"), "create table only_here ()");
    expect(await ask(other.url("postgres", "postgres"), "select to_regclass('only_here')")).toEqual([null]);
  });

  test("a folder in use is refused with the id of its process, which keeps running", async () => {
    await haveCluster();
    const { child } = await startHolder();
    await expect(start()).rejects.toThrow(`in use by the service with process id ${child.pid}`);
    const url = await runningCluster({ dataDir });
    expect(await ask(url!("postgres", "postgres"), "select 1")).toEqual([1]);
  });

  test("runningCluster returns null if no service runs", async () => {
    await haveCluster();
    expect(await runningCluster({ dataDir })).toBeNull();
    await (await start()).stop();
    expect(await runningCluster({ dataDir })).toBeNull();
  });

  test.runIf(process.getuid!() === 0)(
    "runningCluster refuses a cluster of another user instead of waiting",
    async () => {
      await haveCluster();
      await start();
      // The process changes its user by itself: another user might not be able to load the modules.
      const look = `import { runningCluster } from ${JSON.stringify(CLUSTER)};
      process.setuid(${NOBODY});
      await runningCluster({ dataDir: ${JSON.stringify(dataDir)} }).catch(({ message }) => console.log(message));`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", look], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      expect(await text(child.stdout)).toContain("run this command as the user who runs the service");
    },
  );

  test("a cluster of another major version is refused with advice and not changed", async () => {
    await mkdir(join(dataDir, "postgres"), { recursive: true });
    await writeFile(join(dataDir, "postgres/PG_VERSION"), "16\n");
    await expect(start()).rejects.toThrow(
      /contains a cluster of Postgres 16, but the embedded Postgres is 18.*npm run upgrade/s,
    );
    expect(await readdir(join(dataDir, "postgres"))).toEqual(["PG_VERSION"]);
  });

  test("an upgrade that was interrupted before its last step is completed by the next start", async () => {
    await haveCluster();
    const first = await start();
    await ask(first.url("postgres", "postgres"), "create table kept as select 42 as answer");
    await first.stop();
    await mkdir(join(dataDir, "postgres-15"));
    await mkdir(join(dataDir, "upgrading"));
    await rename(join(dataDir, "postgres"), join(dataDir, "upgrading/postgres"));
    const second = await start();
    expect(await ask(second.url("postgres", "postgres"), "select answer from kept")).toEqual([42]);
    expect(await readdir(dataDir)).not.toContain("upgrading");
  });

  test("a folder with other files is refused and not changed", async () => {
    await mkdir(join(dataDir, "postgres"), { recursive: true });
    await writeFile(join(dataDir, "postgres/thesis.txt"), "years of work");
    await expect(start()).rejects.toThrow("contains no Postgres cluster");
    expect(await readdir(join(dataDir, "postgres"))).toEqual(["thesis.txt"]);
  });

  test("a cluster whose creation was interrupted is created again", async () => {
    const draft = join(dataDir, "postgres.new-1a2b3c");
    await mkdir(join(draft, "base"), { recursive: true });
    const survivor = spawn("sleep", ["600"], { cwd: draft });
    children.push(survivor);
    const { url } = await start();
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
    expect((await readdir(dataDir)).filter((name) => name.startsWith("postgres.new"))).toEqual([]);
    expect(survivor.signalCode).toBe("SIGKILL");
  });

  test("one of two concurrent first starts succeeds, the other one is refused", async () => {
    const both = [spawnHolder("pipe"), spawnHolder("pipe")];
    const complaints = both.map(async ({ stderr }) => (await stderr!.setEncoding("utf8").toArray()).join(""));
    const ready = both.map(async (child) => {
      await once(child.stdout!, "data");
      return child;
    });
    const winner = await Promise.race(ready);
    const loser = both.findIndex((child) => child !== winner);
    expect(await complaints[loser]).toContain(`in use by the service with process id ${winner.pid}`);
    expect((await readdir(dataDir)).sort()).toEqual(["postgres", "service.pid", "socket"]);
  });

  test("while a service is starting, other starts are refused and commands wait", async () => {
    const child = spawnHolder("inherit");
    await until(async () => existsSync(join(dataDir, "service.pid")));
    const reached = runningCluster({ dataDir });
    await expect(start()).rejects.toThrow(`in use by the service with process id ${child.pid}`);
    expect(await ask((await reached)!("postgres", "postgres"), "select 1")).toEqual([1]);
    await expect(start()).rejects.toThrow(`in use by the service with process id ${child.pid}`);
  });

  test("a claim whose process id was reused by another process is ignored", async () => {
    await haveCluster();
    await writeFile(join(dataDir, "service.pid"), `${process.ppid}\n1\n`);
    expect(await runningCluster({ dataDir })).toBeNull();
    const { url } = await start();
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
  });

  test("a second start in the same process is refused, and the first keeps running", async () => {
    await haveCluster();
    const { url } = await start();
    await expect(start()).rejects.toThrow(`in use by the service with process id ${process.pid}`);
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
    expect(await runningCluster({ dataDir })).not.toBeNull();
  });

  test("the watching shell ends with the server", async () => {
    await haveCluster();
    const cluster = await start();
    const postmaster = await postmasterOf(dataDir);
    // A child that it is about to start has its command line for a moment.
    await until(async () => (await processesNaming(`kill -INT ${postmaster}`)).length === 1);
    process.kill(postmaster, "SIGKILL");
    await cluster.ended;
    await expect.poll(async () => (await processesNaming(`kill -INT ${postmaster}`)).length === 0).toBe(true);
  });

  test("a pid file whose process id was reused by another process is ignored", async () => {
    await haveCluster();
    await (await start()).stop();
    const somebody = spawn("sleep", ["600"]);
    children.push(somebody);
    await writeFile(join(dataDir, "postgres/postmaster.pid"), `${somebody.pid}\n`);
    const { url } = await start();
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
    expect(somebody.exitCode).toBeNull();
  });

  test("a data folder whose path is too long for a socket gets its socket elsewhere", async () => {
    const long = join(root, "a".repeat(120));
    await haveCluster(long);
    const cluster = await start({ dataDir: long });
    const url = cluster.url("postgres", "postgres");
    expect(await ask(url, "select 1")).toEqual([1]);
    const folder = new URLSearchParams(url.split("?")[1]).get("host")!;
    expect(existsSync(folder)).toBe(true);
    await cluster.stop();
    expect(existsSync(folder)).toBe(false);
  });

  test("a path with spaces, quotes and commas works", async () => {
    const { url } = await start({ dataDir: join(root, `it's "here", really`) });
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
  });

  test("the loopback port is open only if configured, and requires a password", async () => {
    await haveCluster();
    const port = await freePort();
    const { url } = await start({ port });
    const joined = await runningCluster({ dataDir });
    expect(joined!("postgres", "postgres")).toBe(url("postgres", "postgres"));
    await ask(url("postgres", "postgres"), "alter role postgres password 'right'");
    expect(await ask(`postgresql://postgres:right@127.0.0.1:${port}/postgres`, "select 1")).toEqual([1]);
    await expect(ask(`postgresql://postgres:wrong@127.0.0.1:${port}/postgres`, "select 1")).rejects.toMatchObject({
      code: "28P01",
    });
  });

  test("a port in use is reported with its setting", async () => {
    await haveCluster();
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    try {
      await expect(start({ port: (other.address() as AddressInfo).port })).rejects.toThrow("set EMBEDDED_PORT");
    } finally {
      other.close();
    }
  });

  test("a folder that cannot be created is reported with its setting", async () => {
    await writeFile(dataDir, "not a folder");
    await expect(start()).rejects.toThrow(`${dataDir} cannot be written (EEXIST). Set DATA_DIR`);
    await expect(start({ dataDir: join(dataDir, "below") })).rejects.toThrow("Set DATA_DIR");
  });

  test("a failed start reports Postgres's message and leaves nothing behind", async () => {
    await haveCluster();
    await expect(start({ settings: { shared_buffers: "none" } })).rejects.toThrow(/did not start.*shared_buffers/s);
    expect(existsSync(join(dataDir, "service.pid"))).toBe(false);
    await until(async () => (await processesNaming(dataDir)).length === 0);
  });

  test.runIf(process.getuid?.() === 0)("root can use a folder that is closed to other users", async () => {
    await mkdir(join(root, "closed"), { mode: 0o700 });
    const { url } = await start({ dataDir: join(root, "closed/data") });
    expect(await ask(url("postgres", "postgres"), "select 1")).toEqual([1]);
  });
});

describe("a crash loses no committed row", () => {
  test("kill -9 of the parent stops Postgres, and the next start has every row", async () => {
    await haveCluster();
    const { child, acknowledged } = await startHolder();
    await until(async () => acknowledged.length > 200);
    child.kill("SIGKILL");
    await once(child, "close");
    const { url } = await start();
    const kept = new Set(await ask<string>(url("postgres", "postgres"), "select id::text from kept"));
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
  });

  test("kill -9 of the parent alone leaves no Postgres running", async () => {
    await haveCluster();
    const { child } = await startHolder();
    child.kill("SIGKILL");
    await expect.poll(async () => (await processesNaming(dataDir)).length === 0).toBe(true);
  });

  test("kill -9 of Postgres restarts it, with every row", async () => {
    await haveCluster();
    const { acknowledged } = await startHolder();
    await until(async () => acknowledged.length > 200);
    const killed = await postmasterOf(dataDir);
    process.kill(killed, "SIGKILL");
    // Rows that the killed Postgres acknowledged may still arrive.
    await expect.poll(() => postmasterOf(dataDir).catch(() => killed)).not.toBe(killed);
    const url = await runningCluster({ dataDir });
    const before = acknowledged.length;
    await until(() => acknowledged.length > before + 200);
    const promised = [...acknowledged];
    const kept = new Set(await ask<string>(url!("postgres", "postgres"), "select id::text from kept"));
    expect(promised.filter((id) => !kept.has(id))).toEqual([]);
  });

  test("kill -9 of both: the next start waits for remaining processes and has every row", async () => {
    await haveCluster();
    const { child, acknowledged } = await startHolder();
    await until(async () => acknowledged.length > 200);
    const postmaster = await postmasterOf(dataDir);
    const ended = once(child, "close");
    child.kill("SIGKILL");
    process.kill(postmaster, "SIGKILL");
    await ended;
    const { url } = await start();
    const kept = new Set(await ask<string>(url("postgres", "postgres"), "select id::text from kept"));
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
  });
});
