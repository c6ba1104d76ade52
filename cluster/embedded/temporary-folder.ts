import { chmod, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { draftNameOf, listStaleDrafts } from "./draft-files.ts";

/** Runs the work with a new folder, and removes it afterwards. Also removes the folders of killed processes. */
export async function withTemporaryFolder<T>(name: string, work: (folder: string) => Promise<T>): Promise<T> {
  for (const left of await listStaleDrafts(tmpdir())) {
    // The folder may belong to another user.
    if (left.startsWith(`${name}.`)) await rm(join(tmpdir(), left), { recursive: true, force: true }).catch(() => {});
  }
  const folder = await draftNameOf(join(tmpdir(), name));
  await mkdir(folder, { mode: 0o700 });
  try {
    // The embedded Postgres may run as another user.
    await chmod(folder, 0o755);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
