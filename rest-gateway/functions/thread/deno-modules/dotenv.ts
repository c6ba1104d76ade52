// Deno's std/dotenv/mod.ts. The file `.env` of the functions is in the environment already.

import { env } from "node:process";

type Variables = Readonly<Record<string, string | undefined>>;

export function loadSync(): Variables {
  return { ...env };
}

export async function load(): Promise<Variables> {
  return loadSync();
}

export { load as config, loadSync as configSync };
