import { type Config, isEmbedded } from "../config/config.ts";
import { readOrMakeSecrets } from "../secrets.ts";
import { makeTokenKeys, type TokenKeys } from "./keys.ts";

/** The deployment's token keys: those of the settings, else the ones that were made for the embedded database. */
export async function deploymentKeys(config: Config): Promise<TokenKeys> {
  const given = config.jwtSecret !== null || config.jwtPrivateKey !== null;
  if (given || !isEmbedded(config)) return makeTokenKeys(config);
  const { jwtSecret } = await readOrMakeSecrets(config.dataDir);
  return makeTokenKeys({ ...config, jwtSecret, jwtSecretIsBase64: false });
}
