import { join } from "node:path";

/** Returns the folder of an installed package of the peers, which have their own packages. */
export function peerPackage(name: string): string {
  return join(import.meta.dirname, "../peers/node_modules", name);
}
