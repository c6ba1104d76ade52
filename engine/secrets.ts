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
  const file = fileIn(dataDir);
  await mkdir(resolve(dataDir), { recursive: true });
  const found = await read(file);
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
    return (await read(file)) ?? secrets;
  } finally {
    await rm(draft, { force: true });
  }
}

/** For commands, which make none: those of a mistyped folder would be nobody's. */
export async function readSecrets(dataDir: string): Promise<Secrets> {
  const found = await read(fileIn(dataDir));
  if (found) return found;
  throw new Error(
    `There are no keys in ${resolve(dataDir)}. Start the service once to make them, set DATA_DIR to the folder that has them, ` +
      "or set JWT_SECRET as the service has it.",
  );
}

function fileIn(dataDir: string): string {
  return join(resolve(dataDir), "secrets.json");
}

async function read(file: string): Promise<Secrets | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return text === null ? null : (JSON.parse(text) as Secrets);
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}
