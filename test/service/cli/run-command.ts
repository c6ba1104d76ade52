import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestDatabase } from "../../database.ts";
import { COMPILE_CACHE } from "../../program.ts";
import { NO_PROJECT, REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";

export type CommandResult = { readonly stdout: string; readonly stderr: string; readonly code: number };

const MAX_OUTPUT = 2 ** 26;

/** A command as a person runs it, on that database. */
export function runCommand(
  name: string,
  words: readonly string[],
  { url, ownerUrl }: Pick<TestDatabase, "url" | "ownerUrl">,
  settings: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  const own = { DATABASE_URL: url, OWNER_DATABASE_URL: ownerUrl, JWT_SECRET: SECRET };
  return runCommandWith(name, words, { ...own, ...settings });
}

/** The same with these settings and no other. */
export function runCommandWith(
  name: string,
  words: readonly string[],
  settings: NodeJS.ProcessEnv,
): Promise<CommandResult> {
  const line = [join(REPOSITORY, `service/cli/${name}.ts`), ...words];
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, MIGRATIONS_DIR: NO_PROJECT, ...settings };
  return promisify(execFile)(process.execPath, line, { cwd: REPOSITORY, env, maxBuffer: MAX_OUTPUT }).then(
    ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
    (error) => error as CommandResult,
  );
}
