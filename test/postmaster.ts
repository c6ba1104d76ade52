import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The process of the embedded Postgres that has its data in that folder. */
export async function postmasterOf(dataDir: string): Promise<number> {
  return Number.parseInt(await readFile(join(dataDir, "postgres/postmaster.pid"), "utf8"), 10);
}
