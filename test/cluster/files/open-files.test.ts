import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cloneDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

test("unused files are collected in the background: /health names it while the folder is none, and it goes on afterwards", async () => {
  await using opened = new AsyncDisposableStack();
  const database = await cloneDatabase("content");
  opened.defer(() => database.drop());
  const parent = await mkdtemp(join(tmpdir(), "files-"));
  opened.defer(() => rm(parent, { recursive: true }));
  const folder = join(parent, "files");
  await writeFile(folder, "");
  const service = await serve(database, { STORAGE_DIR: folder });
  opened.defer(() => service.stop());
  const health = async () =>
    (await (await fetch(`${service.url}/health`)).json()) as { status: string; reason?: string };
  await until(async () => (await health()).reason?.includes("collection of files") ?? false);
  await rm(folder);
  await mkdir(folder);
  await expect.poll(async () => (await health()).status === "ok").toBe(true);
});
