import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { refuseClosedMailFolder } from "../../../engine/mail/mail-folder.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mail-folder-"));
  await writeFile(join(folder, "file"), "");
});
afterEach(() => rm(folder, { recursive: true }));

test("a folder that cannot be made is refused by the setting that names it", async () => {
  const mailDir = join(folder, "file/mail");
  await expect(refuseClosedMailFolder({ smtpUrl: null, mailDir })).rejects.toThrow(
    `MAIL_DIR must be a folder that this user may write, not "${mailDir}" (ENOTDIR)`,
  );
});

test("one that can be made is, and none is looked at where mails are sent", async () => {
  await refuseClosedMailFolder({ smtpUrl: null, mailDir: join(folder, "mails") });
  await refuseClosedMailFolder({ smtpUrl: "smtp://localhost", mailDir: join(folder, "unused") });
  await refuseClosedMailFolder({ smtpUrl: null, mailDir: null });
  expect((await readdir(folder)).sort()).toEqual(["file", "mails"]);
});
