import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Scratch } from "../measuring/scratch.ts";
import { type MeasuredServer, type Program, startProgram } from "./program.ts";
import { JWT_SECRET } from "./sign-claims.ts";

const ROOT = join(import.meta.dirname, "../..");

export const OURS = "ours";

export type OursOptions = Partial<Pick<Program, "name" | "prefix" | "stderr" | "readyWithinSeconds">> & {
  /** The number of workers; one by default, like most of the other servers. */
  readonly workers?: number;
  /** Options of node. */
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** Starts the program itself, as `npm start` does. */
export async function startOurs(
  scratch: Pick<Scratch, "url">,
  url: string,
  { prefix = "/rest/v1/", workers = 1, execArgv = [], env = {}, ...others }: OursOptions = {},
): Promise<MeasuredServer> {
  const server = await startProgram({
    name: OURS,
    command: process.execPath,
    args: [...execArgv, join(ROOT, "server.js")],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: url,
      OWNER_DATABASE_URL: scratch.url("postgres"),
      JWT_SECRET,
      NODE_ENV: "production",
      LOG_LEVEL: "error",
      // The limit is out of reach, but requests are counted.
      RATE_LIMIT: "1000000000",
      // All clients have one address, and saturate the processors intentionally.
      LOAD_SHEDDING: "false",
      // The peers select all columns of users, for callers who may see all users.
      USERS_ACCESS: "open",
      WEB_CONCURRENCY: String(workers),
      ...env,
    }),
    dialect: "tables",
    prefix,
    ...others,
  });
  // The first worker is ready; connections are distributed among all that serve.
  while (workers > 1 && (await workersOf(server)) < workers) await sleep(50);
  return server;
}

async function workersOf({ base }: MeasuredServer): Promise<number> {
  const response = await fetch(new URL("/health", base), { headers: { Connection: "close" } });
  return ((await response.json()) as { workers: number }).workers;
}
