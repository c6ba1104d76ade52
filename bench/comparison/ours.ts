import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Scratch } from "../measuring/scratch.ts";
import { type MeasuredServer, type Program, startProgram } from "./program.ts";
import { JWT_SECRET } from "./sign-claims.ts";

const ROOT = join(import.meta.dirname, "../..");

export const OURS = "ours";

export type OursOptions = Partial<Pick<Program, "name" | "prefix" | "stderr" | "readyWithinSeconds">> & {
  /** One by default, like most of those that it is compared with. */
  readonly workers?: number;
  /** Options of node. */
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** The program itself, as `npm start` runs it. */
export async function startOurs(
  scratch: Scratch,
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
      // Beyond reach, but counted.
      RATE_LIMIT: "1000000000",
      // All clients have one address, and saturate the processors on purpose.
      LOAD_SHEDDING: "false",
      // The peers select all columns of users, for callers who may see all of them.
      USERS_ACCESS: "open",
      WEB_CONCURRENCY: String(workers),
      ...env,
    }),
    dialect: "tables",
    prefix,
    ...others,
  });
  // The first is ready; connections are distributed among those that serve.
  while (workers > 1 && (await workersOf(server)) < workers) await sleep(50);
  return server;
}

async function workersOf({ base }: MeasuredServer): Promise<number> {
  const response = await fetch(new URL("/health", base), { headers: { Connection: "close" } });
  return ((await response.json()) as { workers: number }).workers;
}
