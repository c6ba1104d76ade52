import { fork } from "node:child_process";
import { once } from "node:events";
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [database, settings] = JSON.parse(process.argv[2]!);
  const service = await serve(database, settings);
  process.on("message", () => process.send!(process.resourceUsage().maxRSS / 1024));
  process.send!(service.url);
}
