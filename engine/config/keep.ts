import { isDeepStrictEqual } from "node:util";
import { Coalescer } from "../coalescer.ts";
import type { Listener } from "../listen.ts";
import type { Logger } from "../log.ts";
import { type Config, ConfigError, type ReadConfig, withDatabaseSettings } from "./config.ts";
import { readDatabaseSettings } from "./in-database.ts";

export type ConfigKeeper = {
  /** What the environment says, and the database in its place where it says something. Hold on to one for a request. */
  current(): Config;
  /**
   * Begins to listen. Called with each new config before it is the current one; when this rejects the old one stays, and it
   * is tried again.
   */
  follow(apply: Apply): void;
  /** Resolves when a reading that began after this call is in force. */
  reload(): Promise<void>;
  close(): Promise<void>;
};

export type Apply = (config: Config) => Promise<void>;

export type ConfigKeeperOptions = {
  readonly config: Config;
  /** As the login that requests use. */
  readonly url: string;
  /** Null: the settings are read once. */
  readonly listener: Listener | null;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly debounceMs?: number;
};

/** The settings come before the catalogue, which is read by them. */
const RELOAD = new Set(["", "reload schema", "reload config"]);

/** Reads the settings of the database, and again whenever it is told to. Rejects when they are wrong at first. */
export async function keepConfig(options: ConfigKeeperOptions): Promise<ConfigKeeper> {
  return new Keeper(options, await readInForce(options));
}

async function readInForce({ config, url }: Pick<ConfigKeeperOptions, "config" | "url">): Promise<ReadConfig> {
  return withDatabaseSettings(
    config,
    config.databaseConfig ? await readDatabaseSettings(url, config.preConfig) : new Map(),
  );
}

class Keeper implements ConfigKeeper {
  readonly #options: ConfigKeeperOptions;
  readonly #reloads: Coalescer;
  #current: Config;
  #warnings: readonly string[] = [];
  #apply: Apply = async () => {};
  #stopListening: (() => void)[] = [];
  /** What has been made anew before it failed goes by other settings than those in force. */
  #isHalfApplied = false;
  #problem: string | null = null;
  #hasFailed = false;
  #closed = false;

  constructor(options: ConfigKeeperOptions, { config, warnings }: ReadConfig) {
    this.#options = options;
    this.#current = config;
    this.#warn(warnings);
    this.#reloads = new Coalescer(() => this.#readOrTell(), options.debounceMs ?? 100);
  }

  current(): Config {
    return this.#current;
  }

  follow(apply: Apply): void {
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
  }

  async #listen(): Promise<void> {
    const { listener, log, config } = this.#options;
    if (!listener || !config.databaseConfig) return;
    const reload = () => void this.reload().catch(() => {});
    this.#stopListening.push(listener.onGap(reload));
    try {
      const unlisten = await listener.listen(config.channel, (payload) => RELOAD.has(payload) && reload());
      this.#stopListening.push(unlisten);
      if (this.#closed) unlisten();
      // What was told before it listened.
      else reload();
    } catch (error) {
      if (!this.#closed) log.warn({ err: error, channel: config.channel }, "requests to reload settings are not heard");
    }
  }

  /** What is wrong stays wrong until somebody mends it; only what cannot be asked is asked again. */
  async #readOrTell(): Promise<void> {
    const { log } = this.#options;
    try {
      const { config, warnings } = await readInForce(this.#options);
      this.#problem = null;
      this.#warn(warnings);
      await this.#takeUp(config);
      this.#hasFailed = false;
    } catch (error) {
      if (error instanceof ConfigError) {
        if (error.message !== this.#problem) log.error(`${error.message}\nThe old settings stay.`);
        this.#problem = error.message;
        if (this.#isHalfApplied) await this.#takeUp(this.#current);
        return;
      }
      if (!this.#hasFailed) log.warn({ err: error }, "the settings of the database cannot be taken up; trying again");
      this.#hasFailed = true;
      throw error;
    }
  }

  async #takeUp(config: Config): Promise<void> {
    const changed = differing(config, this.#current);
    if (changed.length === 0 && !this.#isHalfApplied) return;
    this.#isHalfApplied = true;
    await this.#apply(config);
    this.#isHalfApplied = false;
    this.#current = config;
    if (changed.length > 0) this.#options.log.info({ settings: changed }, "settings of the database have changed");
  }

  /** Once for as long as there is reason to. */
  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#warnings.includes(warning)) this.#options.log.warn(warning);
    this.#warnings = warnings;
  }
}

/** By their names in the program: values may be secrets. */
function differing(config: Config, previous: Config): string[] {
  const keys = Object.keys(config) as (keyof Config)[];
  return keys.filter((key) => !isDeepStrictEqual(config[key], previous[key]));
}
