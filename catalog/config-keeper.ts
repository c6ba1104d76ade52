import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import {
  type Config,
  ConfigError,
  type DatabaseSettings,
  type LoadedConfig,
  rereadFiles,
  SETTINGS_IN_DATABASE,
  withDatabaseSettings,
} from "#config";
import { type Listener, quotedName, withClient } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { Coalescer, Supervisor, type WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { parseSettings } from "./roles.ts";

/** Settings for all databases come first, so that those for this database override them. */
const LOGIN_SETTINGS = `
  select pg_catalog.unnest(setconfig) as setting
  from pg_catalog.pg_db_role_setting
  where setrole operator(pg_catalog.=) (select oid from pg_catalog.pg_roles where rolname operator(pg_catalog.=) session_user)
    and setdatabase operator(pg_catalog.=) any (array[
      0, (select oid from pg_catalog.pg_database where datname operator(pg_catalog.=) pg_catalog.current_database())
    ]::pg_catalog.oid[])
  order by setdatabase operator(pg_catalog.<>) 0::pg_catalog.oid`;

const CURRENT_VALUES =
  "select name, pg_catalog.current_setting(name, true) as value from pg_catalog.unnest($1::pg_catalog.text[]) as name";

const FUNCTION_EXISTS = `
  select exists (
    select from pg_catalog.pg_proc join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
    where proname = $1 and nspname = any ($2)) as found`;

/** The name that Supabase's documentation gives to the function of its custom access token hook. */
const UNUSED_CLAIMS_HOOK = `
  select nspname || '.' || proname as name
  from pg_catalog.pg_proc join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
  where proname = 'custom_access_token_hook' and proargtypes::pg_catalog.text = 'pg_catalog.jsonb'::pg_catalog.regtype::pg_catalog.oid::pg_catalog.text
  order by nspname <> 'public', nspname limit 1`;

export type ConfigKeeper = {
  /** Returns the settings in effect: those of the database, or else of the environment. A request uses one object throughout. */
  current(): Config;
  /**
   * Starts to listen for changes. `apply` is called with each new config before it becomes the current one. If it rejects,
   * the old config stays current and the change is retried.
   */
  follow(apply: ApplyConfig): void;
  /** Resolves when settings that were read after this call are in effect. */
  reload(): Promise<void>;
  close(): Promise<void>;
};

type ApplyConfig = (config: Config) => Promise<void>;

type ConfigKeeperOptions = {
  readonly config: Config;
  /** The connection string with the login role of requests. */
  readonly url: string;
  /** Null if the settings are read only once. */
  readonly listener: Listener | null;
  readonly supervisor?: Supervisor;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly debounceMs?: number;
};

/** `reload schema` counts too: the settings control how the catalogue is read, so they are read first. */
const RELOAD_PAYLOADS = new Set(["", "reload schema", "reload config"]);

/** The timeout allows the catalogue and the GraphQL schema of a large database to be rebuilt. */
const APPLY_TIMEOUT_MS = 600_000;

/** Reads the settings of the database and the file of the secret, and reads them again on NOTIFY. Rejects if they are invalid at first. */
export async function keepConfig(options: ConfigKeeperOptions): Promise<ConfigKeeper> {
  return new DatabaseConfigKeeper(options, await readEffectiveConfig(options));
}

async function readEffectiveConfig({
  config,
  url,
}: Pick<ConfigKeeperOptions, "config" | "url">): Promise<LoadedConfig> {
  return withDatabaseSettings(
    rereadFiles(config),
    config.databaseConfig ? await readDatabaseSettings(url, config.preConfig) : new Map(),
  );
}

class DatabaseConfigKeeper implements ConfigKeeper {
  readonly #options: ConfigKeeperOptions;
  readonly #reloads: Coalescer;
  #current: Config;
  #warnings: readonly string[] = [];
  #apply: ApplyConfig = async () => {};
  #stopListening: (() => void)[] = [];
  /** True if applying new settings has failed midway: some parts of the service use settings that are not the current ones. */
  #isHalfApplied = false;
  #problem: string | null = null;
  readonly #report: WorkReport;
  #closed = false;

  constructor(options: ConfigKeeperOptions, { config, warnings }: LoadedConfig) {
    this.#options = options;
    this.#report = (options.supervisor ?? new Supervisor(options)).report("settings in the database");
    this.#current = config;
    this.#logWarnings(warnings);
    this.#reloads = new Coalescer(
      () => this.#report.watch(() => this.#readAndApply(), APPLY_TIMEOUT_MS),
      options.debounceMs ?? 100,
    );
  }

  current(): Config {
    return this.#current;
  }

  follow(apply: ApplyConfig): void {
    this.#apply = apply;
    void this.#listen();
  }

  reload(): Promise<void> {
    return this.#reloads.request();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stopListening) stop();
    await this.#reloads.close();
    this.#report.close();
  }

  async #listen(): Promise<void> {
    const { listener, log, config } = this.#options;
    if (!listener || !(config.databaseConfig || config.jwtSecretFile !== null)) return;
    const reload = () => void this.reload().catch(() => {});
    this.#stopListening.push(listener.onGap(reload));
    try {
      const unlisten = await listener.listen(config.channel, (payload) => RELOAD_PAYLOADS.has(payload) && reload());
      this.#stopListening.push(unlisten);
      if (this.#closed) unlisten();
      // A notification may have been sent before LISTEN.
      else reload();
    } catch (error) {
      if (!this.#closed)
        log.warn({ err: error, channel: config.channel }, "LISTEN failed: settings are not reloaded on NOTIFY");
    }
  }

  /** Invalid settings are not retried, since they stay invalid until somebody changes them; connection errors are. */
  async #readAndApply(): Promise<void> {
    try {
      const { config, warnings } = await readEffectiveConfig(this.#options);
      this.#problem = null;
      this.#logWarnings(warnings);
      await this.#applyChanges(config);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      if (error.message !== this.#problem)
        this.#options.log.error(`${error.message}\nThe old settings stay in effect.`);
      this.#problem = error.message;
      if (this.#isHalfApplied) await this.#applyChanges(this.#current);
    }
  }

  async #applyChanges(config: Config): Promise<void> {
    const changed = findChangedKeys(config, this.#current);
    if (changed.length === 0 && !this.#isHalfApplied) return;
    this.#isHalfApplied = true;
    await this.#apply(config);
    this.#isHalfApplied = false;
    this.#current = config;
    if (changed.length > 0) this.#options.log.info({ settings: changed }, "settings of the database have changed");
  }

  /** Logs each warning once, until it disappears. */
  #logWarnings(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#warnings.includes(warning)) this.#options.log.warn(warning);
    this.#warnings = warnings;
  }
}

/** Returns only the keys, because values may be secrets. */
function findChangedKeys(config: Config, previous: Config): string[] {
  const keys = Object.keys(config) as (keyof Config)[];
  return keys.filter((key) => !isDeepStrictEqual(config[key], previous[key]));
}

/**
 * Reads the settings from `alter role … set pgrst.…` for the login role, then those that the function of PGRST_DB_PRE_CONFIG
 * sets. Uses a connection of its own with the login role: the function runs with its privileges, and its session ends
 * afterwards.
 */
export function readDatabaseSettings(url: string, preConfig: string | null): Promise<DatabaseSettings> {
  return withClient(url, async (client) => {
    await client.query("begin read only");
    const { rows } = await client.query<{ setting: string }>(LOGIN_SETTINGS);
    const loginSettings = new Map([...parseSettings(rows)].filter(([name]) => name.startsWith("pgrst.")));
    const name = loginSettings.get("pgrst.db_pre_config") || preConfig;
    return name ? new Map([...(await callPreConfig(client, name)), ...loginSettings]) : loginSettings;
  });
}

async function callPreConfig(client: pg.Client, name: string): Promise<[string, string][]> {
  try {
    await client.query(`select ${quotedName(...name.split("."))}()`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new ConfigError(`The function ${name} (PGRST_DB_PRE_CONFIG) failed: ${error.message}`, { cause: error });
  }
  const { rows } = await client.query<{ name: string; value: string | null }>(CURRENT_VALUES, [
    [...SETTINGS_IN_DATABASE.keys()],
  ]);
  return rows.flatMap(({ name, value }) => (value === null ? [] : [[name, value]]));
}

type FunctionSettings = Pick<Config, "preRequest" | "rootSpec" | "claimsHook" | "schemas" | "extraSearchPath">;

/**
 * Returns warnings about missing functions that settings name, and about a hook that no setting names. They may be created
 * later, so this is no error.
 */
export async function checkNamedFunctions(asOwner: AsOwner, config: FunctionSettings): Promise<string[]> {
  const functions = {
    PGRST_DB_PRE_REQUEST: config.preRequest,
    PGRST_DB_ROOT_SPEC: config.rootSpec,
    CLAIMS_HOOK: config.claimsHook,
  };
  const exists = async (name: string) => {
    const [schema, ...rest] = name.split(".");
    const searchedSchemas = rest.length > 0 ? [schema] : [...config.schemas, ...config.extraSearchPath, "pg_catalog"];
    const { rows } = await asOwner((client) =>
      client.query<{ found: boolean }>(FUNCTION_EXISTS, [rest[0] ?? schema, searchedSchemas]),
    );
    return rows[0]!.found;
  };
  const warnings = config.claimsHook === null ? await findUnusedClaimsHook(asOwner) : [];
  for (const [setting, name] of Object.entries(functions)) {
    if (name === null || (await exists(name))) continue;
    warnings.push(`${setting} names the function ${name}, which does not exist: requests that call it fail`);
  }
  return warnings;
}

/** Policies that read the claims of the hook would hide all rows without an error. */
async function findUnusedClaimsHook(asOwner: AsOwner): Promise<string[]> {
  const { rows } = await asOwner((client) => client.query<{ name: string }>(UNUSED_CLAIMS_HOOK));
  return rows.map(({ name }) => `tokens lack the claims of ${name}: set CLAIMS_HOOK=${name}`);
}
