import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";

/** The service in a process of its own, whose memory is nobody else's. */
export type ServingProcess = AsyncDisposable & {
  readonly url: string;
  /** The most memory that it has had so far, in MiB. */
  peak(): Promise<number>;
};

export async function serveApart(
  { url, ownerUrl }: TestDatabase,
  settings: Readonly<Record<string, string>> = {},
): Promise<ServingProcess> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify([{ url, ownerUrl }, settings])]);
  const heard = async () => (await once(child, "message"))[0];
  const address = await heard();
  return {
    url: address,
    async peak() {
      child.send("peak");
      return heard();
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "close");
    },
  };
}

/** Of this program alone: on Linux, what `resourceUsage` tells begins with what the process had that started it. */
function peak(): number {
  const status = "/proc/self/status";
  const told = existsSync(status) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(status, "utf8"))?.[1] : undefined;
  return Number(told ?? process.resourceUsage().maxRSS) / 1024;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [database, settings] = JSON.parse(process.argv[2]!);
  const service = await serve(database, settings);
  process.on("message", () => process.send!(peak()));
  process.send!(service.url);
}
