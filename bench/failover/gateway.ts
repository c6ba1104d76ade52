import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent } from "#cluster/embedded";
import { JWT_SECRET } from "../comparison/sign-claims.ts";
import type { Settings } from "./patroni-cluster.ts";

const SERVER = join(import.meta.dirname, "../../server.js");
const LOOK_MS = 50;

export type Gateway = AsyncDisposable & {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the gateway has ended. */
  readonly ended: Promise<unknown>;
  /** Returns the exit code; null while the gateway runs. */
  exitCode(): number | null;
  stop(): Promise<void>;
};

/** Starts a gateway on this port, and resolves when it is ready; its log goes to the file. */
export async function startGateway(
  { HOST = "127.0.0.1", ...settings }: Settings,
  port: number,
  logFile: string,
): Promise<Gateway> {
  const child = spawn(process.execPath, [SERVER], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: "production",
      PORT: String(port),
      HOST,
      RATE_LIMIT: "0",
      WEB_CONCURRENCY: "1",
      LOG_LEVEL: "warn",
      ...settings,
      // This secret differs from the cluster's, because the clients sign their tokens with it.
      JWT_SECRET,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithParent(child, "SIGKILL");
  child.stderr.pipe(createWriteStream(logFile, { flags: "a" }));
  const ended = once(child, "exit");
  const url = `http://${HOST}:${port}`;
  while (!(await fetch(`${url}/health/ready`).catch(() => null))?.ok) {
    if (child.exitCode !== null) throw new Error(`The gateway ended with ${child.exitCode}; see ${logFile}`);
    await sleep(LOOK_MS);
  }
  const stop = async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await ended;
  };
  return { url, pid: child.pid!, ended, exitCode: () => child.exitCode, stop, [Symbol.asyncDispose]: stop };
}
