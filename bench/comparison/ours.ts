import { join } from "node:path";
import type { Scratch } from "../scratch.ts";
import { type MeasuredServer, type Program, startProgram } from "./program.ts";
import { JWT_SECRET } from "./sign-claims.ts";

const ROOT = join(import.meta.dirname, "../..");

export const OURS = "ours";

export type OursOptions = Partial<Pick<Program, "prefix" | "stderr" | "readyWithinSeconds">> & {
  /** Options of node. */
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** The program itself, as `npm start` runs it. */
export function startOurs(
  scratch: Scratch,
  url: string,
  { prefix = "/rest/v1/", execArgv = [], env = {}, ...others }: OursOptions = {},
): Promise<MeasuredServer> {
  return startProgram({
    name: OURS,
    command: process.execPath,
    args: [...execArgv, join(ROOT, "server.ts")],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: url,
      OWNER_DATABASE_URL: scratch.url("postgres"),
      JWT_SECRET,
      NODE_ENV: "production",
      LOG_LEVEL: "error",
      // Beyond reach, but counted.
      RATE_LIMIT: "1000000000",
      ...env,
    }),
    dialect: "tables",
    prefix,
    ...others,
  });
}
