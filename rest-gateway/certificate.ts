import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Config } from "../engine/config/config.ts";

export type Certificate = { readonly cert: Buffer; readonly key: Buffer };

/** What the files of HTTPS_CERT_FILE and HTTPS_KEY_FILE hold; null without them. Rejects in words. */
export async function readCertificate({
  httpsCertificate,
  httpsKey,
}: Pick<Config, "httpsCertificate" | "httpsKey">): Promise<Certificate | null> {
  if (httpsCertificate === null || httpsKey === null) return null;
  const [cert, key] = await Promise.all([read("HTTPS_CERT_FILE", httpsCertificate), read("HTTPS_KEY_FILE", httpsKey)]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(
      `HTTPS_CERT_FILE and HTTPS_KEY_FILE do not hold a certificate and its key in PEM form: ${(error as Error).message}`,
    );
  }
  return { cert, key };
}

async function read(setting: string, file: string): Promise<Buffer> {
  return readFile(file).catch((error: Error) => {
    throw new Error(`${setting} cannot be read: ${error.message}`);
  });
}
