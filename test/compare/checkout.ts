import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "../repository.ts";

const run = promisify(execFile);

export async function git(...words: string[]): Promise<string> {
  return (await run("git", words, { cwd: REPOSITORY })).stdout.trim();
}

/** The commit in which the branch left main; on main itself the one before. */
export async function defaultCommit(): Promise<string> {
  const base = await git("merge-base", "HEAD", "main").catch(() => null);
  return base === null || base === (await git("rev-parse", "HEAD")) ? "HEAD~1" : base;
}

/** The files of a commit in a temporary folder, with the packages of its lockfile. */
export async function checkOut(commit: string): Promise<AsyncDisposable & { readonly root: string }> {
  const parent = await mkdtemp(join(tmpdir(), "compared-commit-"));
  const root = join(parent, "tree");
  const remove = async () => {
    await git("worktree", "remove", "--force", root).catch(() => {});
    await rm(parent, { recursive: true, force: true });
  };
  try {
    await git("worktree", "add", "--detach", "--quiet", root, commit);
    await installPackages(root);
    return { root, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function installPackages(root: string): Promise<void> {
  const [own, other] = await Promise.all([REPOSITORY, root].map(readLockfile));
  if (own === other) await symlink(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  else await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: root });
}

function readLockfile(folder: string): Promise<string> {
  return readFile(join(folder, "package-lock.json"), "utf8");
}
