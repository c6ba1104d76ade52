import pg from "pg";
import { parse } from "smol-toml";
import type { ConfiguredHook } from "./sign-in-hooks.ts";

/** The result of importing config.toml. */
export type ImportedConfig = {
  readonly settings: Readonly<Record<string, string>>;
  /** Globs of the seed files, relative to the folder `supabase`. */
  readonly seeds: readonly string[];
  /** The buckets to create, as SQL. */
  readonly buckets: readonly string[];
  readonly hooks: Readonly<Record<string, ConfiguredHook>>;
  readonly changes: readonly string[];
};

type Table = { readonly [name: string]: unknown };

/** A setting for a value of config.toml. If `toText` returns null, the value is not taken over. */
type Counterpart = {
  readonly path: string;
  readonly setting: string;
  readonly toText: (value: unknown) => string | null;
};

const text = (value: unknown) => (isEnvironment(value) ? null : String(value));
const list = (value: unknown) => (Array.isArray(value) ? value.map(String).join(",") : null);
const negated = (value: unknown) => String(value !== true);

const COUNTERPARTS: readonly Counterpart[] = [
  { path: "api.schemas", setting: "PGRST_DB_SCHEMAS", toText: list },
  { path: "api.extra_search_path", setting: "PGRST_DB_EXTRA_SEARCH_PATH", toText: list },
  { path: "api.max_rows", setting: "PGRST_DB_MAX_ROWS", toText: text },
  { path: "auth.site_url", setting: "SITE_URL", toText: (value) => toUrl(value) },
  { path: "auth.additional_redirect_urls", setting: "SIGN_IN_REDIRECTS", toText: (value) => toRedirects(value) },
  { path: "auth.enable_signup", setting: "AUTH_SIGN_UPS", toText: text },
  { path: "auth.enable_anonymous_sign_ins", setting: "AUTH_ANONYMOUS_SIGN_INS", toText: text },
  { path: "auth.enable_manual_linking", setting: "AUTH_MANUAL_LINKING", toText: text },
  { path: "auth.email.enable_confirmations", setting: "AUTH_AUTOCONFIRM", toText: negated },
  { path: "auth.email.double_confirm_changes", setting: "AUTH_SECURE_EMAIL_CHANGE", toText: text },
  { path: "auth.email.secure_password_change", setting: "AUTH_PASSWORD_REAUTHENTICATION", toText: text },
  { path: "auth.email.max_frequency", setting: "MAIL_INTERVAL_SECONDS", toText: (value) => toSeconds(value) },
  {
    path: "storage.file_size_limit",
    setting: "STORAGE_FILE_BYTES",
    toText: (value) => toBytes(value)?.toString() ?? null,
  },
];

/** Sections for Supabase's own programs, which do not affect clients. */
const LOCAL_SECTIONS: readonly string[] = [
  "project_id",
  "studio",
  "inbucket",
  "analytics",
  "experimental",
  "local_smtp",
  "remotes",
];
/** Values that need no counterpart, because they describe the behaviour here. */
const SAME_HERE =
  /^(api\.(enabled|port|tls\..*)|db\.(port|shadow_port|major_version|health_timeout|pooler\..*|migrations\..*|seed\..*|network_restrictions\..*)|realtime\..*|storage\.(enabled|buckets\..*|image_transformation\..*|s3_protocol\..*|vector\..*|analytics\..*)|auth\.(enabled|jwt_expiry|enable_refresh_token_rotation|refresh_token_reuse_interval|minimum_password_length|password_requirements|email\.enable_signup|email\.otp_length|email\.otp_expiry|rate_limit\..*|hook\..*|sms\..*|web3\..*|oauth_server\..*|third_party\..*)|edge_runtime\..*)$/;

/** Imports config.toml, and reports every value that is not taken over. */
export function importConfig(source: string): ImportedConfig {
  const config = parse(source) as Table;
  const settings: Record<string, string> = {};
  const changes: string[] = [];
  for (const { path, setting, toText } of COUNTERPARTS) {
    const value = valueAt(config, path);
    if (value === undefined) continue;
    const translated = toText(value);
    if (translated !== null) settings[setting] = translated;
    else changes.push(`config.toml: ${path} is not taken over; set ${setting} yourself`);
  }
  const known = new Set(COUNTERPARTS.map(({ path }) => path));
  const passwords = toPasswordPolicy(config);
  settings.PASSWORD_POLICY = passwords.policy;
  if (passwords.change !== null) changes.push(passwords.change);
  if (settings.AUTH_SIGN_UPS === "false" && settings.AUTH_ANONYMOUS_SIGN_INS === "true")
    changes.push("config.toml: anonymous sign-ins are refused while auth.enable_signup is false");
  for (const [path, value] of leavesOf(config))
    if (!known.has(path) && !SAME_HERE.test(path) && !LOCAL_SECTIONS.includes(path.split(".")[0]!))
      changes.push(...explainUnknown(path, value));
  return {
    settings,
    seeds: valueAt(config, "db.seed.enabled") === false ? [] : seedPaths(valueAt(config, "db.seed.sql_paths")),
    buckets: Object.entries(tableAt(config, "storage.buckets")).map(([name, options]) =>
      toBucket(name, options as Table),
    ),
    hooks: hooksOf(config),
    changes: [...new Set(changes)],
  };
}

function explainUnknown(path: string, value: unknown): string[] {
  const [section, part, name, key] = path.split(".");
  if (section === "functions") return [];
  if (section === "auth" && part === "external")
    return key === "enabled" && value === true
      ? [`config.toml: add the provider ${name} by "npm run provider", its secrets are not in this file`]
      : [];
  if (section === "auth" && part === "mfa") return [];
  if (section === "auth" && part === "email" && name === "template")
    return key === "content_path" ? [`config.toml: copy ${String(value)} to MAIL_TEMPLATES_DIR`] : [];
  if (section === "auth" && part === "email" && name === "smtp")
    return key === "host" ? ["config.toml: set SMTP_URL and MAIL_FROM for auth.email.smtp"] : [];
  return [`config.toml: ${path} has no counterpart here`];
}

function toPasswordPolicy(config: Table): { readonly policy: string; readonly change: string | null } {
  const length = Number(valueAt(config, "auth.minimum_password_length") ?? 6);
  const requirements = String(valueAt(config, "auth.password_requirements") ?? "");
  const policy = length <= 6 && requirements === "" ? "minimal" : length <= 8 ? "standard" : "strict";
  const isSame =
    (policy === "minimal" && length === 6) ||
    (policy === "standard" && length === 8 && requirements.startsWith("lower_upper"));
  const wanted = [`${length} characters`, ...(requirements === "" ? [] : [requirements])].join(", ");
  const change = `config.toml: passwords of ${wanted} become PASSWORD_POLICY=${policy}`;
  return { policy, change: isSame ? null : change };
}

function hooksOf(config: Table): ImportedConfig["hooks"] {
  const hooks = Object.entries(tableAt(config, "auth.hook")) as [string, Table][];
  return Object.fromEntries(
    hooks.map(([name, { enabled, uri }]) => [
      name,
      { isEnabled: enabled !== false && typeof uri === "string", address: String(uri ?? "") },
    ]),
  );
}

function seedPaths(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : ["./seed.sql"];
}

function toBucket(name: string, options: Table): string {
  const limit = toBytes(options.file_size_limit);
  const types = Array.isArray(options.allowed_mime_types)
    ? options.allowed_mime_types.map((type) => pg.escapeLiteral(String(type)))
    : [];
  return (
    "insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)\n" +
    `  values (${pg.escapeLiteral(name)}, ${pg.escapeLiteral(name)}, ${options.public === true}, ${limit ?? "null"}, ` +
    `${types.length === 0 ? "null" : `array[${types.join(", ")}]`})\n  on conflict (id) do nothing;`
  );
}

/** True for `env(NAME)`, which only Supabase's command replaces. */
function isEnvironment(value: unknown): boolean {
  return typeof value === "string" && /^env\(.*\)$/.test(value);
}

function toUrl(value: unknown): string | null {
  return typeof value === "string" && URL.canParse(value) ? value : null;
}

/** Converts redirect patterns. Supabase's `**` allows all paths below; other patterns have no counterpart. */
function toRedirects(value: unknown): string | null {
  if (!Array.isArray(value)) return null;
  const addresses = value.map((address) => String(address).replace(/\/\*{1,2}$/, "/*"));
  return addresses.every((address) => URL.canParse(address) && !address.slice(0, -1).includes("*"))
    ? addresses.join(",")
    : null;
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3600 } as const;

function toSeconds(value: unknown): string | null {
  const [, number, unit] = /^(\d+)(s|m|h)$/.exec(String(value)) ?? [];
  return number === undefined ? null : String(Number(number) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS]);
}

function toBytes(value: unknown): number | null {
  if (typeof value === "number") return value;
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i.exec(String(value ?? "")) ?? [];
  return number === undefined
    ? null
    : Math.round(Number(number) * 1024 ** " KMGT".indexOf((unit || " ").toUpperCase()));
}

function valueAt(config: Table, path: string): unknown {
  let value: unknown = config;
  for (const name of path.split(".")) value = (value as Table | undefined)?.[name];
  return value;
}

function tableAt(config: Table, path: string): Table {
  const value = valueAt(config, path);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Table) : {};
}

function leavesOf(table: Table, prefix = ""): (readonly [path: string, value: unknown])[] {
  return Object.entries(table).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)
      ? leavesOf(value as Table, `${prefix}${name}.`)
      : [[`${prefix}${name}`, value] as const],
  );
}
