import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { REPOSITORY } from "../../repository.ts";

export type FunctionsProject = {
  /** The folder `functions`. */
  readonly folder: string;
  write(path: string, text: string): Promise<void>;
  remove(): Promise<void>;
};

/** A project with the packages of this one. Files are named by their path in the folder `functions`. */
export async function makeFunctionsProject(files: Readonly<Record<string, string>>): Promise<FunctionsProject> {
  const root = await mkdtemp(join(tmpdir(), "functions-project-"));
  const folder = join(root, "supabase/functions");
  const write = async (path: string, text: string) => {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  await mkdir(folder, { recursive: true });
  await symlink(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  for (const [path, text] of Object.entries(files)) await write(path, text);
  return { folder, write, remove: () => rm(root, { recursive: true }) };
}
