import type { SettingReader } from "./setting-readers.ts";

export type SettingDefinition<T> = {
  /** The canonical name, then aliases such as PostgREST's names. */
  readonly names: readonly [string, ...string[]];
  readonly read: SettingReader<T>;
  /** The default as text; null if there is none. */
  readonly fallback: string | null;
  readonly description: string;
  readonly secret: boolean;
};

type SettingNames = string | readonly [string, ...string[]];

export function withDefault<T>(
  names: SettingNames,
  read: SettingReader<T>,
  fallback: string,
  description: string,
): SettingDefinition<T> {
  return { names: typeof names === "string" ? [names] : names, read, fallback, description, secret: false };
}

export function optional<T>(
  names: SettingNames,
  read: SettingReader<T>,
  description: string,
): SettingDefinition<T | null> {
  return { names: typeof names === "string" ? [names] : names, read, fallback: null, description, secret: false };
}

export function secret<T>(
  names: SettingNames,
  read: SettingReader<T>,
  description: string,
): SettingDefinition<T | null> {
  return { ...optional(names, read, description), secret: true };
}
