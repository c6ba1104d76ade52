import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withTemporaryFolder } from "../../../cluster/embedded/temporary-folder.ts";
import { REPOSITORY } from "../../repository.ts";

/** Prints the folder, and stays in the work. */
const HOLDER = `
  const { withTemporaryFolder } = await import(${JSON.stringify(join(REPOSITORY, "cluster/embedded/temporary-folder.ts"))});
  await withTemporaryFolder("temporary-folder-test", (folder) => new Promise(() => {
    process.stdout.write(folder);
    setInterval(() => {}, 1000);
  }));`;

async function startHolder() {
  const child = spawn(process.execPath, ["--input-type=module", "-e", HOLDER], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [folder] = await once(child.stdout, "data");
  return { child, folder: String(folder) };
}

test("the folder of a process that was killed is removed by the next one, and that of one that works stays", async () => {
  const [killed, working] = [await startHolder(), await startHolder()];
  try {
    await writeFile(join(killed.folder, "rows"), "of a database");
    killed.child.kill("SIGKILL");
    await once(killed.child, "close");
    const own = await withTemporaryFolder("temporary-folder-test", async (folder) => {
      expect([killed.folder, working.folder, folder].map((each) => existsSync(each))).toEqual([false, true, true]);
      expect((await stat(folder)).mode & 0o777).toBe(0o755);
      return folder;
    });
    expect(existsSync(own)).toBe(false);
  } finally {
    working.child.kill("SIGKILL");
    await once(working.child, "close");
  }
  await withTemporaryFolder("temporary-folder-test", async () => expect(existsSync(working.folder)).toBe(false));
});
