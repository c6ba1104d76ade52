import { existsSync } from "node:fs";
import { join } from "node:path";
import { startOurs } from "../rest/contestants.ts";
import { type Contestant, startProgram } from "../rest/program.ts";
import { JWT_SECRET } from "../rest/tokens.ts";
import type { Scratch } from "../scratch.ts";

const PEERS = join(import.meta.dirname, "../peers");

export const BARE = "bare PostGraphile 5";
export const APOLLO = "Apollo + DataLoader";

/** As many as there are callers at a time. */
const POOL_SIZE = "16";

/** The documented schema, or the one that PostGraphile makes of the same database by itself. */
export type Shape = "contract" | "amber";

export type Server = Pick<Contestant, "name" | "base" | "pid" | "stop"> & { readonly shape: Shape };

export type Entrant = {
  readonly isInstalled: boolean;
  readonly name: string;
  start(scratch: Scratch): Promise<Server>;
};

/** All of them on one Postgres, with the same roles, tokens and policies. */
export const ENTRANTS: readonly Entrant[] = [
  { name: "ours", isInstalled: true, start: startOurGraphQL },
  opponent(BARE, "amber", join(import.meta.dirname, "bare-postgraphile.ts"), true),
  opponent(
    APOLLO,
    "contract",
    join(PEERS, "apollo.mjs"),
    ["@apollo/server", "dataloader"].every((name) => existsSync(join(PEERS, "node_modules", name))),
  ),
];

export async function startOurGraphQL(scratch: Scratch): Promise<Server> {
  const ours = await startOurs(scratch, scratch.url("authenticator"));
  return { ...ours, base: new URL("/graphql", ours.base), shape: "contract" };
}

function opponent(name: string, shape: Shape, file: string, isInstalled: boolean): Entrant {
  const start = async (scratch: Scratch): Promise<Server> => {
    const program = await startProgram({
      name,
      command: process.execPath,
      args: [file],
      env: (port) => ({
        PORT: port,
        DATABASE_URL: scratch.url("authenticator"),
        JWT_SECRET,
        POOL_SIZE,
        NODE_ENV: "production",
        GRAPHILE_ENV: "production",
      }),
      dialect: "handlers",
      prefix: "/graphql",
    });
    return { ...program, shape };
  };
  return { name, isInstalled, start };
}
