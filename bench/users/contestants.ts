import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Entrant, OURS, startOurs as startService } from "../rest/contestants.ts";
import type { Contestant } from "../rest/program.ts";
import { startProgram } from "../rest/program.ts";
import { JWT_SECRET } from "../rest/tokens.ts";
import type { Scratch } from "../scratch.ts";

const PEERS = join(import.meta.dirname, "../peers");

export const DRIZZLE = "Express + Drizzle";

/** As many as there are callers at a time. */
const POOL_SIZE = "16";

export const ENTRANTS: readonly Entrant[] = [
  { name: OURS, isInstalled: true, start: (scratch) => startOurs(scratch, scratch.url("authenticator")) },
  {
    name: DRIZZLE,
    isInstalled: existsSync(join(PEERS, "node_modules/drizzle-orm")),
    start: (scratch) =>
      startProgram({
        name: DRIZZLE,
        command: process.execPath,
        args: [join(PEERS, "drizzle.mjs")],
        env: (port) => ({
          PORT: port,
          DATABASE_URL: scratch.url("authenticator"),
          JWT_SECRET,
          POOL_SIZE,
          NODE_ENV: "production",
        }),
        dialect: "handlers",
        prefix: "/",
      }),
  },
];

export function startOurs(scratch: Scratch, url: string): Promise<Contestant> {
  return startService(scratch, url, "/");
}
