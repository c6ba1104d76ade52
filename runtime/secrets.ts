import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  randomUUID,
} from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const WEBHOOK_SECRET_PREFIX = "whsec_";

export type DeploymentSecrets = {
  readonly jwtSecret: string;
  /** The password for loopback connections to the embedded Postgres. */
  readonly databasePassword: string;
};

/** Returns the secrets of an embedded deployment, which are generated once, in a file that only this user can read. */
export async function readOrMakeSecrets(dataDir: string): Promise<DeploymentSecrets> {
  const file = secretsFile(dataDir);
  await mkdir(resolve(dataDir), { recursive: true });
  const found = await readSecretsFile(file);
  if (found) return found;
  const draft = `${file}.${randomUUID()}`;
  const secrets: DeploymentSecrets = { jwtSecret: randomSecret(), databasePassword: randomSecret() };
  try {
    await writeFile(draft, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
    // A hard link is atomic, and does not replace secrets that another process has just created.
    await link(draft, file);
    return secrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return (await readSecretsFile(file)) ?? secrets;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Returns the secrets for commands. It generates none, because they would be useless in a mistyped folder. */
export async function readSecrets(dataDir: string): Promise<DeploymentSecrets> {
  const found = await readSecretsFile(secretsFile(dataDir));
  if (found) return found;
  throw new Error(
    `There are no keys in ${resolve(dataDir)}. Start the service once to make them, set DATA_DIR to the folder that has them, ` +
      "or set JWT_SECRET as the service has it.",
  );
}

function secretsFile(dataDir: string): string {
  return join(resolve(dataDir), "secrets.json");
}

async function readSecretsFile(file: string): Promise<DeploymentSecrets | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return text === null ? null : (JSON.parse(text) as DeploymentSecrets);
}

function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Authenticated encryption with a 32-byte key. */
export function encryptBytes(parts: readonly (string | Buffer)[], key: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const sealed = parts.map((part) => (typeof part === "string" ? cipher.update(part, "utf8") : cipher.update(part)));
  return Buffer.concat([nonce, ...sealed, cipher.final(), cipher.getAuthTag()]);
}

export function decryptBytes(sealed: Buffer, key: Buffer): Buffer {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}

/** Returns the keys of a webhook's secret: two, separated by a space, while receivers change from one to the other. */
export function parseWebhookSecret(secret: string): readonly KeyObject[] {
  return secret.split(" ").map((part) => createSecretKey(part.slice(WEBHOOK_SECRET_PREFIX.length), "base64"));
}

/**
 * Returns the headers of the specification "Standard Webhooks", with a signature of each key. Signing with the bytes of a
 * key would take six times as long.
 */
export function signWebhook(id: string, body: string, keys: readonly KeyObject[]): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signatures = keys.map((key) => {
    const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    return `v1,${signature}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
