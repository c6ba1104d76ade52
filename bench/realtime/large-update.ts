// Benchmarks one transaction that changes a whole table, while clients listen and one of them reads slowly.

import type { WebSocket } from "ws";
import { startOurs } from "../comparison/ours.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { processorTimeOf } from "../measuring/processor-time.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import { startScratch } from "../measuring/scratch.ts";
import { watchMemory } from "../measuring/watch-memory.ts";
import { joinNews, NEWS } from "./news.ts";

type Size = { readonly rows: number; readonly subscribers: number; readonly callers: number };

const SIZES: readonly Size[] = [
  { rows: 100_000, subscribers: 50, callers: 5 },
  { rows: 2_000, subscribers: 1_000, callers: 1_000 },
];
/** The part that other clients have received when the client that has read nothing so far reads on. */
const PAUSE = 1 / 3;

/** Matches the end of `…,"errors":null,"position":"0/16B3748.2@5f0c2a91"}}]`. */
const INDEX = /"errors":null,"position":"[^"]*\.(\d+)@[^"]*"\}\}\]$/;
const LONGEST_END = 70;

export async function benchLargeUpdate({ print }: BenchOptions): Promise<object> {
  const results: object[] = [];
  for (const size of SIZES) results.push(await measure(size, print));
  return results;
}

async function measure({ rows, subscribers, callers }: Size, print: BenchOptions["print"]): Promise<object> {
  await using scratch = await startScratch(NEWS);
  await scratch.execute(
    `insert into news (title, body) select 'Title', repeat('x', 100) from generate_series(1, ${rows})`,
  );
  const server = await startOurs(scratch, scratch.url("authenticator"));
  const sockets: WebSocket[] = [];
  try {
    for (let number = 0; number < subscribers; number++) sockets.push(await joinNews(server.base, number % callers));
    const [slow, ...others] = sockets as [WebSocket, ...WebSocket[]];
    const reading = others.map((socket) => readInOrder(socket, rows, () => slow.resume()));
    const ending = readToEnd(slow, rows);
    slow.pause();
    const idle = (await residentMebibytes(server.pid)) ?? 0;
    const watch = watchMemory(server.pid);
    const [node, postgres] = [await processorTimeOf(server.pid), await scratch.processorTime()];
    const startedAt = performance.now();
    await scratch.execute("update news set title = title || '!'");
    await Promise.all(reading);
    const seconds = (performance.now() - startedAt) / 1000;
    const most = watch.stop();
    const { code, told } = await ending;
    const messages = rows * others.length;
    const each = (before: number | null, after: number | null) =>
      before === null || after === null ? null : (after - before) / messages;
    const result = {
      seconds,
      messagesPerSecond: messages / seconds,
      nodeMicroseconds: each(node, await processorTimeOf(server.pid)),
      postgresMicroseconds: each(postgres, await scratch.processorTime()),
      idleMebibytes: idle,
      mostMebibytes: most,
      slowReader: { code, told },
    };
    print(`an update of ${rows} rows in one transaction, sent to ${others.length} subscribers of ${callers} callers`);
    print(
      `  all in order within ${seconds.toFixed(1)} s: ${Math.round(result.messagesPerSecond)} messages/s (each: service ${result.nodeMicroseconds?.toFixed(1)} µs, Postgres ${result.postgresMicroseconds?.toFixed(1)} µs)`,
    );
    print(`  memory of the service ${idle.toFixed(0)} MiB before, ${most.toFixed(0)} MiB at most`);
    print(
      `  one that read nothing for a while received ${told} in order${code === null ? "" : `, then its socket was closed with code ${code}`}`,
    );
    return result;
  } finally {
    for (const socket of sockets) socket.terminate();
    await server.stop();
  }
}

/** Resolves when all changes have arrived, and rejects if one is missing or arrives twice. */
function readInOrder(socket: WebSocket, rows: number, onPause: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 0;
    onChange(socket, (index) => {
      if (index !== next) reject(new Error(`Change ${index} came in place of ${next}`));
      if (++next === Math.floor(rows * PAUSE)) onPause();
      if (next === rows) resolve();
    });
    socket.on("close", (code) => reject(new Error(`Closed with code ${code} after ${next} of ${rows} changes`)));
  });
}

/** Counts the received changes; `code` is the code with which the socket was closed before the end, or null. */
function readToEnd(socket: WebSocket, rows: number): Promise<{ readonly code: number | null; readonly told: number }> {
  return new Promise((resolve, reject) => {
    let told = 0;
    onChange(socket, (index) => {
      if (index !== told) reject(new Error(`The slow one received change ${index} in place of ${told}`));
      if (++told === rows) resolve({ code: null, told });
    });
    socket.on("close", (code) => resolve({ code, told }));
  });
}

/** Calls back with the number of each change in its transaction. */
function onChange(socket: WebSocket, take: (index: number) => void): void {
  socket.on("message", (data: Buffer) => {
    const index = INDEX.exec(data.toString("latin1", Math.max(0, data.length - LONGEST_END)))?.[1];
    if (index !== undefined) take(Number(index));
  });
}
