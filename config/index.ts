export { branchDatabase, withDatabase } from "./branch.ts";
export { claimAt, withClaimAt } from "./claim-path.ts";
export {
  type Config,
  ConfigError,
  type DatabaseSettings,
  isEmbedded,
  isLoopbackHost,
  type LoadedConfig,
  MIN_POOL_SIZE,
  readConfig,
  readProjectSettings,
  rereadFiles,
  withDatabaseSettings,
} from "./config.ts";
export { DEFAULT_JWT_ISSUER } from "./interface-settings.ts";
export { checkListenAddress, type ListenAddress, listenAt, readCertificate } from "./listen-address.ts";
export { branchName } from "./setting-readers.ts";
export { SETTINGS_IN_DATABASE } from "./settings.ts";
export { describeSettings, writeSettingsDocument } from "./settings-document.ts";
export { listSignInSettings } from "./sign-in-settings.ts";
