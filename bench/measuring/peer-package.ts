import { join } from "node:path";

/** Where it is once it is installed: the peers have a package of their own. */
export function peerPackage(name: string): string {
  return join(import.meta.dirname, "../peers/node_modules", name);
}
