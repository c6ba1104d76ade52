import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkMailFolder } from "../../../accounts/mail/mailer.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mail-folder-"));
  await writeFile(join(folder, "file"), "");
});
afterEach(() => rm(folder, { recursive: true }));

test("a MAIL_DIR that cannot be created is refused with the setting's name", async () => {
  const mailDir = join(folder, "file/mail");
  await expect(checkMailFolder({ smtpUrl: null, mailDir })).rejects.toThrow(
    `MAIL_DIR must be a folder that this user can write to, not "${mailDir}" (ENOTDIR)`,
  );
});

test("MAIL_DIR is created if possible, and ignored when SMTP_URL is set", async () => {
  await checkMailFolder({ smtpUrl: null, mailDir: join(folder, "mails") });
  await checkMailFolder({ smtpUrl: "smtp://localhost", mailDir: join(folder, "unused") });
  await checkMailFolder({ smtpUrl: null, mailDir: null });
  expect((await readdir(folder)).sort()).toEqual(["file", "mails"]);
});
