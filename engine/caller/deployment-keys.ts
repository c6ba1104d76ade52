import { type Config, isEmbedded } from "../config/config.ts";
import type { Secrets } from "../secrets.ts";
import { makeTokenKeys, type TokenKeys } from "./keys.ts";

/** The deployment's token keys: those of the settings, else the ones that were made for the embedded database. */
export async function deploymentKeys(
  config: Config,
  secretsIn: (dataDir: string) => Promise<Secrets>,
): Promise<TokenKeys> {
  const given = config.jwtSecret !== null || config.jwtPrivateKey !== null;
  if (given || !isEmbedded(config)) return makeTokenKeys(config);
  const { jwtSecret } = await secretsIn(config.dataDir);
  return makeTokenKeys({ ...config, jwtSecret, jwtSecretIsBase64: false });
}
