import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { COMPILE_CACHE } from "../../program.ts";
import { REPOSITORY } from "../../repository.ts";
import type { CommandResult } from "./run-command.ts";

export const BIN = join(REPOSITORY, "bin/content-service.js");

/** A temporary folder where content-service is installed, as a link to this repository. */
export type ProjectFolder = AsyncDisposable & {
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** `content-service …` in the folder. */
  run(...args: readonly string[]): Promise<CommandResult>;
  /** `npm …` in the folder. */
  npm(...args: readonly string[]): Promise<CommandResult>;
};

export async function makeProjectFolder(settings: NodeJS.ProcessEnv = {}): Promise<ProjectFolder> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-project-"));
  const programs = join(folder, "node_modules/.bin");
  await mkdir(programs, { recursive: true });
  await symlink(REPOSITORY, join(folder, "node_modules/content-service"));
  await symlink(BIN, join(programs, "content-service"));
  const environment = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, PORT: "0", ...settings };
  const execute = (file: string, args: readonly string[]) =>
    promisify(execFile)(file, args, { cwd: folder, env: environment }).then(
      ({ stdout, stderr }) => ({ stdout, stderr, code: 0 }),
      (error) => error as CommandResult,
    );
  return {
    folder,
    environment,
    run: (...args) => execute(process.execPath, [BIN, ...args]),
    npm: (...args) => execute("npm", args),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
