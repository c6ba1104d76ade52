import { access, constants, mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";

/** Creates the folder for e-mails that are written instead of sent; readable by this user only. */
export async function createMailFolder(folder: string): Promise<string> {
  await mkdir(resolve(folder), { recursive: true, mode: 0o700 });
  return resolve(folder);
}

/** Fails at startup when MAIL_DIR is not writable, instead of when the first e-mail is lost. */
export async function checkMailFolder({ smtpUrl, mailDir }: Pick<Config, "smtpUrl" | "mailDir">): Promise<void> {
  if (smtpUrl !== null || mailDir === null) return;
  try {
    await access(await createMailFolder(mailDir), constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`MAIL_DIR must be a folder that this user can write to, not "${mailDir}" (${code}).`, {
      cause,
    });
  }
}
