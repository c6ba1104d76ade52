// Benchmarks file uploads and downloads beside nginx on the same folder, per second and per second of processor time.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { endWithParent } from "#cluster/embedded";
import { signClaims } from "./comparison/sign-claims.ts";
import { type FaultySystem, startFaultySystem } from "./faults/system.ts";
import { freePort } from "./measuring/free-port.ts";
import type { Bench, BenchOptions } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { processorTimeOf } from "./measuring/processor-time.ts";
import { residentMebibytes } from "./measuring/resident-memory.ts";

const NGINX = "/usr/sbin/nginx";
const KIB = 1024;
const MIB = 1024 * KIB;
const SIZES = { "1 KB": KIB, "1 MB": MIB, "100 MB": 100 * MIB };
const LARGEST = 1024 * MIB;
const MEMORY_BOUND_MIB = 64;
const TOKEN = `Bearer ${signClaims({ role: "service_role" })}`;
/** The processor time per second below which a service is quiet. */
const QUIET_MICROSECONDS = 50_000;
const BUCKET = "bench";

/** The minimum ratios of downloads per processor second. */
const TARGETS: Readonly<Record<string, number>> = { "1 KB": 0.5, "1 MB": 0.8, "100 MB": 0.8 };

type Server = { readonly name: string; readonly pid: number; readonly pool: Pool };
type Transfer = (server: Server) => Promise<void>;
/** Requests per second, and per second of the processor time of the server's own processes. */
type Rate = { readonly perSecond: number; readonly perProcessorSecond: number };

export const bench: Bench = async (options) => {
  const { print } = options;
  print("storage: one process each, on the same folder; per processor second of the server, without Postgres");
  if (!existsSync(NGINX)) throw new Error("nginx is not installed");
  const folder = await mkdtemp(join(tmpdir(), "content-service-storage-"));
  try {
    await using system = await startFaultySystem({
      ...{ STORAGE_DIR: folder, STORAGE_FILE_BYTES: String(2 * LARGEST), LOAD_SHEDDING: "false" },
    });
    await system.execute(`insert into storage.buckets (id, name, public) values ('${BUCKET}', '${BUCKET}', true)`);
    await using nginx = await startNginx(folder);
    const ours: Server = { name: "ours", pid: system.service(), pool: new Pool(system.url, { connections: 16 }) };
    await becomeQuiet(ours.pid);
    const rates = await compare(ours, nginx, folder, options);
    const memory = await measureMemory(ours, system);
    print(
      `\n  memory while 1 GB is sent: upload +${memory.upload.toFixed(0)} MiB, download +${memory.download.toFixed(0)} MiB`,
    );
    await ours.pool.close();
    const isSlow = Object.entries(TARGETS).some(([size, target]) => rates[`download ${size}`]!.ratio < target);
    return { rates, memory, isMissed: isSlow || Math.max(memory.upload, memory.download) > MEMORY_BOUND_MIB };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Waits until the service is quiet: in its first seconds it builds its GraphQL schema. */
async function becomeQuiet(pid: number): Promise<void> {
  for (let before = -Infinity; ; await sleep(1000)) {
    const now = (await processorTimeOf(pid))!;
    if (now - before < QUIET_MICROSECONDS) return;
    before = now;
  }
}

type Compared = { readonly ours: Rate; readonly nginx: Rate; readonly ratio: number };

async function compare(ours: Server, nginx: Server, folder: string, { rounds, seconds, print }: BenchOptions) {
  const rates: Record<string, Compared> = {};
  for (const [size, bytes] of Object.entries(SIZES)) {
    const content = Buffer.alloc(bytes, size);
    const concurrency = bytes > MIB ? 2 : 8;
    let number = 0;
    const upload: Transfer = (server) =>
      server === ours
        ? send(server, "POST", `/storage/v1/object/${BUCKET}/${size.replace(" ", "")}-${++number % 100}`, content)
        : send(server, "PUT", `/up/${++number % 100}`, content);
    const before = new Set(await listFiles(folder));
    rates[`upload ${size}`] = await compareTransfer(`upload ${size}`, upload);
    const file = (await listFiles(folder)).find((name) => !before.has(name) && !name.startsWith("up/"))!;
    const download: Transfer = (server) =>
      server === ours
        ? receive(server, `/storage/v1/object/public/${BUCKET}/${size.replace(" ", "")}-1`)
        : receive(server, `/${file}`);
    rates[`download ${size}`] = await compareTransfer(`download ${size}`, download);

    async function compareTransfer(name: string, transfer: Transfer): Promise<Compared> {
      const all: Compared[] = [];
      for (let round = 0; round < rounds; round++) {
        const one = await measure(ours, transfer, concurrency, seconds);
        const other = await measure(nginx, transfer, concurrency, seconds);
        all.push({ ours: one, nginx: other, ratio: one.perProcessorSecond / other.perProcessorSecond });
      }
      const ratio = median(all.map((each) => each.ratio));
      const result = { ...(all.find((each) => each.ratio === ratio) ?? all[0]!), ratio };
      print(
        `  ${name.padEnd(16)} ${show(result.ours.perSecond)}/s, nginx ${show(result.nginx.perSecond)}/s;` +
          ` per processor second ${show(result.ours.perProcessorSecond)}, nginx ${show(result.nginx.perProcessorSecond)}: ${ratio.toFixed(2)}`,
      );
      return result;
    }
  }
  return rates;
}

function show(rate: number): string {
  return rate >= 100 ? rate.toFixed(0) : rate.toFixed(1);
}

async function measure(server: Server, transfer: Transfer, concurrency: number, seconds: number): Promise<Rate> {
  await transfer(server);
  const cpu = await processorTimeOf(server.pid);
  const begun = performance.now();
  const end = begun + seconds * 1000;
  let count = 0;
  const work = async () => {
    while (performance.now() < end) {
      await transfer(server);
      count++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  const elapsed = (performance.now() - begun) / 1000;
  const used = ((await processorTimeOf(server.pid))! - cpu!) / 1_000_000;
  return { perSecond: count / elapsed, perProcessorSecond: count / used };
}

async function send({ pool }: Server, method: "POST" | "PUT", path: string, body: Buffer): Promise<void> {
  const headers = { authorization: TOKEN, "x-upsert": "true", "content-type": "application/octet-stream" };
  const response = await pool.request({ method, path, headers, body });
  await response.body.dump();
  if (response.statusCode >= 300) throw new Error(`${method} ${path} is ${response.statusCode}`);
}

async function receive({ pool }: Server, path: string): Promise<void> {
  const response = await pool.request({ method: "GET", path });
  for await (const _chunk of response.body);
  if (response.statusCode !== 200) throw new Error(`GET ${path} is ${response.statusCode}`);
}

async function listFiles(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
}

/** Measures the growth of the resident memory while 1 GB is sent in each direction. */
async function measureMemory({ pool }: Server, system: FaultySystem) {
  const path = `/storage/v1/object/${BUCKET}/1GB`;
  const upload = await growthOf(system.service(), async () => {
    const headers = { authorization: TOKEN, "x-upsert": "true", "content-length": String(LARGEST) };
    const chunk = Buffer.alloc(MIB, "x");
    const body = (async function* () {
      for (let sent = 0; sent < LARGEST; sent += MIB) yield chunk;
    })();
    const { body: answer } = await pool.request({
      method: "POST",
      path,
      headers,
      body: (await import("node:stream")).Readable.from(body),
    });
    await answer.dump();
  });
  const download = await growthOf(system.service(), async () => {
    const { body } = await pool.request({ method: "GET", path, headers: { authorization: TOKEN } });
    let bytes = 0;
    for await (const chunk of body) bytes += (chunk as Buffer).length;
    if (bytes !== LARGEST) throw new Error(`1 GB was received as ${bytes} bytes`);
  });
  return { upload, download };
}

async function growthOf(pid: number, work: () => Promise<void>): Promise<number> {
  const before = (await residentMebibytes(pid))!;
  let most = before;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      most = Math.max(most, (await residentMebibytes(pid)) ?? 0);
      await sleep(20);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await watching;
  }
  return most - before;
}

/** Starts nginx with one worker that serves the folder, and accepts uploads. */
async function startNginx(folder: string): Promise<Server & AsyncDisposable> {
  const port = await freePort();
  const file = join(folder, "nginx.conf");
  await writeFile(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr crit; user root;
     events { worker_connections 64; }
     http {
       access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; client_body_temp_path ${folder}/up-temp;
       server {
         listen 127.0.0.1:${port}; root ${folder}; client_max_body_size 0;
         location /up/ { dav_methods PUT; create_full_put_path on; }
       }
     }`,
  );
  const child = spawn(NGINX, ["-c", file, "-p", folder], { stdio: "ignore" });
  endWithParent(child, "SIGTERM");
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 16 });
  while (!(await fetch(`http://127.0.0.1:${port}/`).catch(() => null))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    await sleep(50);
  }
  return {
    ...{ name: "nginx", pid: child.pid!, pool },
    async [Symbol.asyncDispose]() {
      await pool.close();
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}
