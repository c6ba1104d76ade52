import { randomBytes, randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

export type Secrets = {
  readonly jwtSecret: string;
  /** For loopback connections to the embedded Postgres. */
  readonly databasePassword: string;
};

/** The secrets of an embedded deployment: made once, kept where only this user reads them. */
export async function readOrMakeSecrets(dataDir: string): Promise<Secrets> {
  const file = join(resolve(dataDir), "secrets.json");
  await mkdir(resolve(dataDir), { recursive: true });
  const found = await readSecrets(file);
  if (found) return found;
  const draft = `${file}.${randomUUID()}`;
  const secrets: Secrets = { jwtSecret: randomSecret(), databasePassword: randomSecret() };
  try {
    await writeFile(draft, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
    // A link appears whole or not at all, and never replaces the secrets that another process has just made.
    await link(draft, file);
    return secrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return (await readSecrets(file)) ?? secrets;
  } finally {
    await rm(draft, { force: true });
  }
}

async function readSecrets(file: string): Promise<Secrets | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return text === null ? null : (JSON.parse(text) as Secrets);
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}
