import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LOOP_WATCH, longestRun } from "../../../bench/hostile/loop-holds.ts";
import type { TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";

/** The service in a process of its own, whose memory is nobody else's. */
export type ServingProcess = AsyncDisposable & {
  readonly url: string;
  /** The most memory that it has had so far, in MiB. */
  peak(): Promise<number>;
  /** Returns the most milliseconds that its thread ran in one turn of the event loop since then, by `Date.now()`. */
  longestRun(since: number): Promise<number>;
};

export async function serveApart(
  { url, ownerUrl }: TestDatabase,
  settings: Readonly<Record<string, string>> = {},
): Promise<ServingProcess> {
  const folder = await mkdtemp(join(tmpdir(), "serving-process-"));
  const holds = join(folder, "holds");
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify([{ url, ownerUrl }, settings])], {
    execArgv: [...process.execArgv, ...LOOP_WATCH],
    env: { ...process.env, LOOP_WATCH_FILE: holds },
  });
  const heard = async () => (await once(child, "message"))[0];
  const address = await heard();
  return {
    url: address,
    async peak() {
      child.send("peak");
      return heard();
    },
    longestRun: (since) => longestRun(holds, since),
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "close");
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns the peak of this program alone: on Linux, `resourceUsage` also counts the process that started it. */
function peak(): number {
  const status = "/proc/self/status";
  const result = existsSync(status) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8"))?.[1] : undefined;
  return Number(result ?? process.resourceUsage().maxRSS) / 1024;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [database, settings] = JSON.parse(process.argv[2]!);
  const service = await serve(database, settings);
  process.on("message", () => process.send!(peak()));
  process.send!(service.url);
}
