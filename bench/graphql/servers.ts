import { existsSync } from "node:fs";
import { startOurs } from "../comparison/ours.ts";
import { startPeer } from "../comparison/peer.ts";
import type { MeasuredServer } from "../comparison/program.ts";
import { peerPackage } from "../measuring/peer-package.ts";
import type { Scratch } from "../measuring/scratch.ts";

export const BARE = "bare PostGraphile 5";
export const APOLLO = "Apollo + DataLoader";

/** The documented schema, or the one that PostGraphile makes of the same database by default. */
export type Shape = "contract" | "amber";

export type Server = Pick<MeasuredServer, "name" | "base" | "pid" | "stop"> & { readonly shape: Shape };

export type ServerLauncher = {
  readonly isInstalled: boolean;
  readonly name: string;
  start(scratch: Scratch): Promise<Server>;
};

/** The servers. All use one Postgres, with the same roles, tokens and policies. */
export const SERVERS: readonly ServerLauncher[] = [
  { name: "ours", isInstalled: true, start: startOurGraphQL },
  opponent(BARE, "amber", "peers/postgraphile.mjs", existsSync(peerPackage("postgraphile"))),
  opponent(
    APOLLO,
    "contract",
    "peers/apollo.mjs",
    ["@apollo/server", "dataloader"].every((name) => existsSync(peerPackage(name))),
  ),
];

export async function startOurGraphQL(scratch: Scratch): Promise<Server> {
  const ours = await startOurs(scratch, scratch.url("authenticator"));
  return { ...ours, base: new URL("/graphql", ours.base), shape: "contract" };
}

function opponent(name: string, shape: Shape, file: string, isInstalled: boolean): ServerLauncher {
  const start = async (scratch: Scratch): Promise<Server> => {
    const peer = { name, file, env: { GRAPHILE_ENV: "production" }, prefix: "/graphql" };
    return { ...(await startPeer(scratch, peer)), shape };
  };
  return { name, isInstalled, start };
}
