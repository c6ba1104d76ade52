import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const REPOSITORY = join(import.meta.dirname, "../..");

export const JWT_SECRET = "a secret that is long enough to sign with";

export type Told = { readonly stdout: string; readonly stderr: string; readonly code: number };

type Database = { readonly url: string; readonly ownerUrl: string };

/** A command as a person runs it, on that database. */
export function runCommand(
  name: string,
  words: readonly string[],
  { url, ownerUrl }: Database,
  settings: Readonly<Record<string, string>> = {},
): Promise<Told> {
  const env = { PATH: process.env.PATH, DATABASE_URL: url, OWNER_DATABASE_URL: ownerUrl, JWT_SECRET, ...settings };
  const line = [join(REPOSITORY, `commands/${name}.ts`), ...words];
  return promisify(execFile)(process.execPath, line, { cwd: REPOSITORY, env }).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    (error) => error as Told,
  );
}
