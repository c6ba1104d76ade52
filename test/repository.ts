import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The folder of this repository: commands are run there, and its files are read. */
export const REPOSITORY = join(import.meta.dirname, "..");

/** A MIGRATIONS_DIR without migrations, so that the tests judge the release and no tables of a project in this clone. */
export const NO_PROJECT = join(REPOSITORY, "test/no-project");

/** The TypeScript of the service: neither tests and benchmarks nor the pages of Studio. */
export function serviceFiles(): string[] {
  return repositoryFiles("*.ts").filter(
    (file) => !/^(test|bench|examples|studio|templates)\/|\.config\.ts$/.test(file),
  );
}

/** Returns the files that are tracked or would be, of a kind such as `*.md` or of all; by their paths from there. */
export function repositoryFiles(...kinds: readonly string[]): string[] {
  const words = ["ls-files", "--cached", "--others", "--exclude-standard", ...kinds];
  const listed = execFileSync("git", words, { cwd: REPOSITORY, encoding: "utf8" }).split("\n");
  // git lists a deleted file until the deletion is committed.
  return listed.filter((file) => file !== "" && existsSync(join(REPOSITORY, file)));
}
