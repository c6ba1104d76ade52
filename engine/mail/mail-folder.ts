import { access, constants, mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";

/** Where mails are written that are not sent; nobody else may look into it. */
export async function makeMailFolder(folder: string): Promise<string> {
  await mkdir(resolve(folder), { recursive: true, mode: 0o700 });
  return resolve(folder);
}

/** Whoever has named a folder learns at the start, not from mails that never come, that it cannot be written. */
export async function refuseClosedMailFolder({ smtpUrl, mailDir }: Pick<Config, "smtpUrl" | "mailDir">): Promise<void> {
  if (smtpUrl !== null || mailDir === null) return;
  try {
    await access(await makeMailFolder(mailDir), constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`MAIL_DIR must be a folder that this user may write, not "${mailDir}" (${code}).`, { cause });
  }
}
