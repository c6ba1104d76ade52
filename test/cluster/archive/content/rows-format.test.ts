import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { restoreArchive } from "../../../../cluster/archive/restore-archive.ts";
import { ownHistories } from "../../../migrate/own-histories.ts";

test("a backup of the first format, which has rows only, is refused with the commands that restore it", async () => {
  await using own = await ownHistories();
  const folder = await mkdtemp(join(tmpdir(), "rows-format-"));
  try {
    const file = join(folder, "content.backup.gz");
    const header = { contentService: 1, postgres: "18.4", madeAt: "2026-01-01T00:00:00Z", migrations: [] };
    await writeFile(file, gzipSync(`${JSON.stringify(header)}\n${JSON.stringify({ rows: 0 })}\n`));
    await expect(restoreArchive(file, own.settings)).rejects.toThrow(
      /rows only\. Nothing was changed\. .+git checkout 6bd84e18, npm ci, npm run restore/,
    );
    expect(await own.rows("select to_regnamespace('auth') as auth")).toEqual([{ auth: null }]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
