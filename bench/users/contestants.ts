import { existsSync } from "node:fs";
import { OURS, startOurs as startService } from "../contest/ours.ts";
import { startPeer } from "../contest/peer.ts";
import type { Contestant, Entrant } from "../contest/program.ts";
import { peerPackage } from "../peer-package.ts";
import type { Scratch } from "../scratch.ts";

export const DRIZZLE = "Express + Drizzle";

export const ENTRANTS: readonly Entrant[] = [
  { name: OURS, isInstalled: true, start: (scratch) => startOurs(scratch, scratch.url("authenticator")) },
  {
    name: DRIZZLE,
    isInstalled: existsSync(peerPackage("drizzle-orm")),
    start: (scratch) => startPeer(scratch, { name: DRIZZLE, file: "peers/drizzle.mjs" }),
  },
];

export function startOurs(scratch: Scratch, url: string): Promise<Contestant> {
  return startService(scratch, url, { prefix: "/" });
}
