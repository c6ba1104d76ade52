import { existsSync } from "node:fs";
import { OURS, startOurs as startService } from "../comparison/ours.ts";
import { startPeer } from "../comparison/peer.ts";
import type { MeasuredServer, ServerLauncher } from "../comparison/program.ts";
import { peerPackage } from "../peer-package.ts";
import type { Scratch } from "../scratch.ts";

export const DRIZZLE = "Express + Drizzle";

export const SERVERS: readonly ServerLauncher[] = [
  { name: OURS, isInstalled: true, start: (scratch) => startOurs(scratch, scratch.url("authenticator")) },
  {
    name: DRIZZLE,
    isInstalled: existsSync(peerPackage("drizzle-orm")),
    start: (scratch) => startPeer(scratch, { name: DRIZZLE, file: "peers/drizzle.mjs" }),
  },
];

export function startOurs(scratch: Scratch, url: string): Promise<MeasuredServer> {
  return startService(scratch, url, { prefix: "/" });
}
