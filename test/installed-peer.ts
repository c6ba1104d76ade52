import { existsSync } from "node:fs";
import { peerPackage } from "../bench/measuring/peer-package.ts";

/** The path of a program that tests start and that is installed apart; null, said on the console, when it is not there. */
export function installedPeer(path: string): string | null {
  const file = peerPackage(path);
  if (existsSync(file)) return file;
  console.warn(`${path} is not here, so nothing is tested with it; \`npm ci --prefix bench/peers\` brings it.`);
  return null;
}
