import type { Config } from "./config.ts";
import { OAUTH_SETTINGS } from "./extension-settings.ts";
import { ACCOUNT_SETTINGS, MAIL_SETTINGS } from "./interface-settings.ts";
import { LIMIT_SETTINGS } from "./service-settings.ts";
import type { SettingDefinition } from "./setting-readers.ts";
import { SETTINGS_IN_DATABASE, type SettingKey } from "./settings.ts";

const { signUpLimit } = LIMIT_SETTINGS;

/** The sign-in settings, without those of keys and claims, which apply to tokens of any origin. */
const SIGN_IN_SETTINGS: readonly (readonly [string, SettingDefinition<unknown>])[] = Object.entries({
  ...ACCOUNT_SETTINGS,
  ...OAUTH_SETTINGS,
  ...MAIL_SETTINGS,
  signUpLimit,
}).filter(([key]) => !key.startsWith("jwt"));

type ListedSetting = {
  readonly name: string;
  /** Null if the setting is not set, or is a secret. */
  readonly value: string | null;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly is_default: boolean;
  /** The name for `alter role … set`; null if only the environment can set it. */
  readonly database_name: string | null;
  readonly description: string;
};

/** Returns the settings of accounts, sign-in and e-mails that are in effect. */
export function listSignInSettings(config: Config): readonly ListedSetting[] {
  const databaseNames = new Map([...SETTINGS_IN_DATABASE].map(([name, key]) => [key, name]));
  return SIGN_IN_SETTINGS.map(([key, { names, secret, fallback, read, description }]) => {
    const value = config[key as SettingKey];
    const text = textOf(value);
    const standard = fallback === null ? null : textOf(read(fallback));
    return {
      name: names[0],
      value: secret ? null : text,
      is_set: text !== null,
      is_secret: secret,
      is_default: text === standard,
      database_name: databaseNames.get(key as SettingKey) ?? null,
      description,
    };
  });
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  return typeof value === "object" && !(value instanceof URL) ? JSON.stringify(value) : String(value);
}
