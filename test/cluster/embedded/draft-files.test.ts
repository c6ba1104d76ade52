import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { deleteStaleDrafts, draftNameOf } from "../../../cluster/embedded/draft-files.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "drafts-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const create = async (name: string, hoursAgo = 0) => {
  const at = new Date(Date.now() - hoursAgo * 3_600_000);
  await writeFile(join(folder, name), "unfinished");
  await utimes(join(folder, name), at, at);
  return name;
};

/** The same name for another process. */
async function draftOf(pid: number, start?: string): Promise<string> {
  const own = basename(await draftNameOf(join(folder, "content.gz")));
  return own.replace(/-\d+-([\da-f]{8})/, (_, ownStart) => `-${pid}-${start ?? ownStart}`);
}

test("only unfinished files whose writer is gone are deleted", async () => {
  const ended = spawn("true");
  const { pid } = ended;
  await once(ended, "exit");
  const stale = [
    await create(await draftOf(pid!)),
    // Its id belongs to another process now.
    await create(await draftOf(process.pid, "00000000")),
    await create("content.gz.0123abcd-1-0123abcd.2f8f5e3a-2d5f-4a6b-9a4e-0a1b2c3d4e5f.part", 25),
    await create("content.gz.2f8f5e3a-2d5f-4a6b-9a4e-0a1b2c3d4e5f.part", 25),
  ];
  const kept = [
    await create(await draftOf(process.pid), 100),
    // A writer on another machine, or of an earlier release, that wrote not long ago.
    await create("content.gz.0123abcd-1-0123abcd.3f8f5e3a-2d5f-4a6b-9a4e-0a1b2c3d4e5f.part", 23),
    await create("content.gz.3f8f5e3a-2d5f-4a6b-9a4e-0a1b2c3d4e5f.part", 23),
    await create("film.mp4.part", 100),
    await create("content.gz", 100),
  ];
  expect((await deleteStaleDrafts(folder)).sort()).toEqual(stale.sort());
  expect((await readdir(folder)).sort()).toEqual(kept.sort());
  expect(await deleteStaleDrafts(join(folder, "missing"))).toEqual([]);
});
