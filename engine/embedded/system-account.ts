import { accessSync, constants } from "node:fs";
import { chown, readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** The operating-system user that runs Postgres; null for the current user. */
export type SystemAccount = { readonly name: string; readonly uid: number; readonly gid: number };

/** Postgres refuses to run as root, so root runs it as a system user. */
export async function chooseAccount(): Promise<SystemAccount | null> {
  if (process.getuid?.() !== 0) return null;
  const passwd = await readFile("/etc/passwd", "utf8");
  const accounts = passwd.split("\n").map((line) => line.split(":"));
  for (const name of ["postgres", "nobody"]) {
    const entry = accounts.find((fields) => fields[0] === name);
    if (entry) return { name, uid: Number(entry[2]), gid: Number(entry[3]) };
  }
  throw new Error(
    "Postgres refuses to run as root, and this machine has neither a user postgres nor a user nobody. " +
      "Start the service as an ordinary user, or add one with: useradd --system postgres",
  );
}

export async function chownTo(account: SystemAccount | null, path: string): Promise<void> {
  if (account) await chown(path, account.uid, account.gid);
}

/** Whether the account may enter all parent folders of the path; not so below a home folder with mode 0700. */
export async function canTraverse(account: SystemAccount | null, path: string): Promise<boolean> {
  if (!account) return isAccessible(path);
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    const { uid, gid, mode } = await stat(folder);
    const searchBit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if (!(mode & searchBit)) return false;
    if (folder === dirname(folder)) return true;
  }
}

function isAccessible(path: string): boolean {
  try {
    accessSync(dirname(resolve(path)), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
