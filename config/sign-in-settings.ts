import type { Config } from "./config.ts";
import { OAUTH_SETTINGS } from "./extension-settings.ts";
import { ACCOUNT_SETTINGS, MAIL_SETTINGS } from "./interface-settings.ts";
import { LIMIT_SETTINGS } from "./service-settings.ts";
import type { SettingDefinition } from "./setting-readers.ts";
import { SETTINGS_IN_DATABASE, type SettingKey } from "./settings.ts";

const { signUpLimit } = LIMIT_SETTINGS;

/** Without those of keys and claims, which decide about tokens of any origin. */
const SIGN_IN_SETTINGS: readonly (readonly [string, SettingDefinition<unknown>])[] = Object.entries({
  ...ACCOUNT_SETTINGS,
  ...OAUTH_SETTINGS,
  ...MAIL_SETTINGS,
  signUpLimit,
}).filter(([key]) => !key.startsWith("jwt"));

export type ListedSetting = {
  readonly name: string;
  /** Null: not set, or a secret. */
  readonly value: string | null;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly is_default: boolean;
  /** By which `alter role … set` sets it; null: only the environment does. */
  readonly database_name: string | null;
  readonly description: string;
};

/** What decides about accounts, sign-in and e-mails, as it is in effect. */
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
