// Benchmarks a start, from the command to the first response, with the embedded Postgres, and the memory of an idle service.

import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram } from "./comparison/program.ts";
import { verdict } from "./comparison/targets.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { processesOf } from "./measuring/processor-time.ts";
import { proportionalMebibytes, residentMebibytes } from "./measuring/resident-memory.ts";

const ROOT = join(import.meta.dirname, "..");
const WORKERS = 2;
/** The time after which the effects of the start have ended. */
const SETTLING_MS = 10_000;
const TARGET = { coldSeconds: 2.5, warmSeconds: 1, mebibytes: 150, workerMebibytes: 130 };

type Start = { readonly seconds: number; readonly mebibytes: number; readonly workers: readonly number[] };

export const bench: Bench = async ({ rounds, print }) => {
  print(`start: npm start in an empty folder, and again, ${rounds} rounds`);
  const [cold, warm, divided]: [Start[], Start[], Start[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    await using folder = await mkdtempDisposable(join(tmpdir(), "content-service-bench-"));
    cold.push(await start(folder.path));
    warm.push(await start(folder.path));
    divided.push(await start(folder.path, WORKERS));
  }
  const of = (starts: readonly Start[], figure: (start: Start) => number) => median(starts.map(figure));
  const result = {
    coldSeconds: of(cold, ({ seconds }) => seconds),
    warmSeconds: of(warm, ({ seconds }) => seconds),
    mebibytes: of(warm, ({ mebibytes }) => mebibytes),
    coldMebibytes: of(cold, ({ mebibytes }) => mebibytes),
    workerMebibytes: median(divided.flatMap(({ workers }) => workers)),
  };
  print(`  ready after ${result.coldSeconds.toFixed(2)} s, again after ${result.warmSeconds.toFixed(2)} s`);
  print(
    `  at rest: ${result.coldMebibytes.toFixed(0)} MiB, again ${result.mebibytes.toFixed(0)} MiB; a worker of ${WORKERS} ${result.workerMebibytes.toFixed(0)} MiB`,
  );
  print("\n  targets");
  const judged = (name: keyof typeof TARGET, unit: string, what: string) =>
    print(verdict(`${what}: ${result[name].toFixed(1)} ${unit}`, result[name] <= TARGET[name], String(TARGET[name])));
  judged("coldSeconds", "s", "the first start");
  judged("warmSeconds", "s", "each later start");
  judged("mebibytes", "MiB", "at rest");
  judged("workerMebibytes", "MiB", "a worker at rest");
  return result;
};

async function start(folder: string, workers = 1): Promise<Start> {
  const startedAt = performance.now();
  const server = await startProgram({
    name: "ours",
    command: process.execPath,
    args: [join(ROOT, "server.js")],
    env: (port) => ({ PORT: port, DATA_DIR: folder, LOG_LEVEL: "error", WEB_CONCURRENCY: String(workers) }),
    dialect: "tables",
    prefix: "/rest/v1/",
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  try {
    await sleep(SETTLING_MS);
    const mebibytes = (await residentMebibytes(server.pid)) ?? Number.NaN;
    const ids = workers === 1 ? [] : (await processesOf(server.pid)).filter((pid) => pid !== server.pid);
    const held = await Promise.all(ids.map(async (pid) => (await proportionalMebibytes(pid)) ?? Number.NaN));
    return { seconds, mebibytes, workers: held };
  } finally {
    await server.stop();
  }
}
