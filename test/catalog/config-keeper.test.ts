import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ConfigKeeper, keepConfig } from "../../catalog/config-keeper.ts";
import { type Config, ConfigError, readConfig } from "../../config/config.ts";
import { type Listener, openListener } from "../../postgres/client/listen.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { SECRET } from "../secret.ts";
import { until } from "../until.ts";

const opened: { close(): Promise<void> }[] = [];
let database: TestDatabase;
let owner: pg.Client;
let logged: string[];

beforeEach(async () => {
  database = await cloneDatabase("empty");
  owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  logged = [];
});
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
  await owner.query(`alter role authenticator in database ${database.name} reset all`);
  await owner.end();
  await database.drop();
});

const note = (...said: unknown[]) => void logged.push(said.map((each) => JSON.stringify(each)).join(" "));
const log = { info: note, warn: note, error: note };

function listen(): Listener {
  const listener = openListener({ url: database.ownerUrl, log });
  opened.push(listener);
  return listener;
}

async function keep(environment: NodeJS.ProcessEnv = {}, listener: Listener | null = null): Promise<ConfigKeeper> {
  const { config } = readConfig({ DATABASE_URL: database.url, JWT_SECRET: SECRET, ...environment });
  const keeper = await keepConfig({ config, url: database.url, listener, log, debounceMs: 5 });
  opened.push(keeper);
  return keeper;
}

/** Sets it in this database alone: all tests use the login. */
const say = (name: string, value: string) =>
  owner.query(`alter role authenticator in database ${database.name} set ${name} = ${pg.escapeLiteral(value)}`);

describe("the file of the secret", () => {
  const OTHER = "another secret of at least 32 characters";
  const withFile = async (work: (file: string) => Promise<void>) => {
    const folder = await mkdtemp(join(tmpdir(), "secret-"));
    try {
      await writeFile(join(folder, "jwt"), `${SECRET}\n`);
      await work(join(folder, "jwt"));
    } finally {
      await rm(folder, { recursive: true });
    }
  };

  test("is read again on a reload and on NOTIFY, also without settings in the database", () =>
    withFile(async (file) => {
      const listener = listen();
      const keeper = await keep({ JWT_SECRET: `@${file}`, PGRST_DB_CONFIG: "false" }, listener);
      keeper.follow(async () => {});
      expect(keeper.current().jwtSecret).toBe(SECRET);
      await writeFile(file, OTHER);
      await keeper.reload();
      expect(keeper.current().jwtSecret).toBe(OTHER);
      await writeFile(file, SECRET);
      await until(async () => {
        await owner.query("notify pgrst, 'reload config'");
        return keeper.current().jwtSecret === SECRET;
      });
    }));

  test("that cannot be read, or has no secret, leaves the old secret in effect", () =>
    withFile(async (file) => {
      const keeper = await keep({ JWT_SECRET: `@${file}` });
      keeper.follow(async () => {});
      await writeFile(file, "short");
      await keeper.reload();
      await rm(file);
      await keeper.reload();
      expect(keeper.current().jwtSecret).toBe(SECRET);
      expect(logged.filter((line) => line.includes("The old settings stay in effect"))).toHaveLength(2);
    }));
});

describe("at the start", () => {
  test("settings of the database take precedence over the environment", async () => {
    await say("pgrst.db_max_rows", "5");
    await say("pgrst.server_cors_allowed_origins", "https://app.example.com");
    const keeper = await keep({ PGRST_DB_MAX_ROWS: "100", PGRST_DB_SCHEMAS: "api" });
    expect(keeper.current()).toMatchObject({
      maxRows: 5,
      schemas: ["api"],
      corsOrigins: ["https://app.example.com"],
    });
  });

  test("an empty text is the default", async () => {
    await say("pgrst.db_max_rows", "");
    expect((await keep({ PGRST_DB_MAX_ROWS: "100" })).current().maxRows).toBeNull();
  });

  test("PGRST_DB_CONFIG=false does not read the database", async () => {
    await say("pgrst.db_max_rows", "5");
    const keeper = await keep({ PGRST_DB_CONFIG: "false", PGRST_DB_PRE_CONFIG: "no_such_function" });
    expect(keeper.current().maxRows).toBeNull();
  });

  test("invalid values are reported by their names in SQL, all at once", async () => {
    await say("pgrst.db_max_rows", "many");
    await say("pgrst.openapi_mode", "open");
    const starting = keep();
    await expect(starting).rejects.toBeInstanceOf(ConfigError);
    await expect(starting).rejects.toThrow(
      'pgrst.db_max_rows must be a whole number of at least 0, not "many"\n  pgrst.openapi_mode must be one of ',
    );
  });

  test("an invalid secret is not printed", async () => {
    await say("pgrst.jwt_secret", "hunter2");
    const refusal = await keep().catch((error: Error) => error.message);
    expect(refusal).toMatch(/pgrst\.jwt_secret must be at least 32 characters$/m);
  });

  test("unknown names are warned about", async () => {
    await say("pgrst.db_schema", "api");
    await say("pgrst.db_pool", "5");
    await say("pgrst.jwt_cache_max_lifetime", "5");
    await keep();
    expect(logged.sort()).toEqual([
      '"pgrst.db_pool has no effect in the database: set PGRST_DB_POOL in the environment"',
      '"pgrst.db_schema is not a setting; did you mean pgrst.db_schemas?"',
      '"pgrst.jwt_cache_max_lifetime has no effect here: a token is cached until it expires"',
    ]);
  });

  test("the secret may come from the database, if settings are read from it", async () => {
    await say("pgrst.jwt_secret", SECRET);
    expect((await keep({ JWT_SECRET: "", PGRST_DB_CONFIG: "true" })).current().jwtSecret).toBe(SECRET);
    await owner.query(`alter role authenticator in database ${database.name} reset all`);
    await expect(keep({ JWT_SECRET: "", PGRST_DB_CONFIG: "true" })).rejects.toThrow("JWT_SECRET");
    await expect(keep({ JWT_SECRET: "", PGRST_DB_CONFIG: "false" })).rejects.toThrow("JWT_SECRET");
  });
});

describe("on NOTIFY", () => {
  const tell = (payload: string) => owner.query("select pg_notify('pgrst', $1)", [payload]);

  const isListening = async () => {
    const { rowCount } = await owner.query(
      `select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and query ~* 'listen "pgrst"'`,
    );
    return rowCount! > 0;
  };

  async function follow(keeper: ConfigKeeper, apply: (config: Config) => Promise<void> = async () => {}) {
    const applied: Config[] = [];
    keeper.follow(async (config) => {
      await apply(config);
      applied.push(config);
    });
    await until(isListening);
    return applied;
  }

  test.each(["reload config", "reload schema", ""])("%j reloads the settings", async (payload) => {
    const keeper = await keep({}, listen());
    const applied = await follow(keeper);
    await say("pgrst.db_max_rows", "5");
    await tell(payload);
    await until(() => keeper.current().maxRows === 5);
    expect(applied.map(({ maxRows }) => maxRows)).toEqual([5]);
    expect(logged.join()).toContain('"settings":["maxRows"]');
  });

  test("other notifications do nothing", async () => {
    const keeper = await keep({}, listen());
    await follow(keeper);
    // The reading that listening begins with is over.
    await keeper.reload();
    await say("pgrst.db_max_rows", "5");
    await tell("reload everything");
    await sleep(100);
    expect(keeper.current().maxRows).toBeNull();
  });

  test("unchanged settings are not applied", async () => {
    const keeper = await keep({}, listen());
    const applied = await follow(keeper);
    await say("pgrst.db_pool", "5");
    await keeper.reload();
    expect(applied).toEqual([]);
  });

  test("an unknown name is warned about even if nothing has changed, and once", async () => {
    const keeper = await keep({}, listen());
    await follow(keeper);
    await say("pgrst.db_max_row", "5");
    await keeper.reload();
    await keeper.reload();
    const warning = '"pgrst.db_max_row is not a setting; did you mean pgrst.db_max_rows?"';
    expect(logged.filter((line) => line === warning)).toHaveLength(1);
  });

  test("a change between the first read and LISTEN is applied", async () => {
    const keeper = await keep({}, listen());
    await say("pgrst.db_max_rows", "5");
    await follow(keeper);
    await expect.poll(() => keeper.current().maxRows === 5).toBe(true);
  });

  test("invalid values leave the old ones in effect, and are logged", async () => {
    await say("pgrst.db_max_rows", "5");
    const keeper = await keep({}, listen());
    const applied = await follow(keeper);
    await say("pgrst.db_max_rows", "many");
    await say("pgrst.db_tx_end", "rollback");
    await keeper.reload();
    expect(keeper.current()).toMatchObject({ maxRows: 5, txEnd: "commit" });
    expect(applied).toEqual([]);
    expect(logged.join()).toContain("pgrst.db_max_rows must be a whole number");
    await say("pgrst.db_max_rows", "6");
    await keeper.reload();
    expect(keeper.current()).toMatchObject({ maxRows: 6, txEnd: "rollback" });
  });

  test("an error is logged once, and again after it was fixed", async () => {
    const keeper = await keep({}, listen());
    await follow(keeper);
    const result = () => logged.filter((line) => line.includes("The old settings stay")).length;
    await say("pgrst.db_max_rows", "many");
    await keeper.reload();
    await keeper.reload();
    expect(result()).toBe(1);
    await say("pgrst.db_max_rows", "lots");
    await keeper.reload();
    expect(result()).toBe(2);
    await say("pgrst.db_max_rows", "6");
    await keeper.reload();
    await say("pgrst.db_max_rows", "lots");
    await keeper.reload();
    expect(result()).toBe(3);
  });

  test("a function that fails leaves the old ones in effect", async () => {
    const keeper = await keep({}, listen());
    await follow(keeper);
    await say("pgrst.db_pre_config", "no_such_function");
    await say("pgrst.db_max_rows", "5");
    await keeper.reload();
    expect(keeper.current().maxRows).toBeNull();
    expect(logged.join()).toContain("The function no_such_function (PGRST_DB_PRE_CONFIG) failed");
  });

  test("settings that cannot be applied are retried without another notification", async () => {
    const keeper = await keep({}, listen());
    let away = true;
    const applied = await follow(keeper, async () => {
      if (away) throw new Error("the catalogue cannot be read");
    });
    await say("pgrst.db_max_rows", "5");
    await expect(keeper.reload()).rejects.toThrow("cannot be read");
    expect(keeper.current().maxRows).toBeNull();
    away = false;
    await until(() => keeper.current().maxRows === 5);
    expect(applied).toHaveLength(1);
  });

  test("a failure to apply settings is logged once, however often it is retried", async () => {
    const keeper = await keep({}, listen());
    let attempts = 0;
    await follow(keeper, async () => {
      attempts++;
      throw new Error("the catalogue cannot be read");
    });
    await say("pgrst.db_max_rows", "5");
    await expect(keeper.reload()).rejects.toThrow("cannot be read");
    await until(() => attempts >= 3);
    expect(logged.filter((line) => line.includes("background work does not run"))).toHaveLength(1);
  });

  test("partially applied settings are applied again, even if they are by then those in effect", async () => {
    const keeper = await keep({}, listen());
    let away = true;
    const applied = await follow(keeper, async () => {
      if (away) throw new Error("the catalogue was read, and something else was away");
    });
    await say("pgrst.db_max_rows", "5");
    await expect(keeper.reload()).rejects.toThrow("something else was away");
    await owner.query(`alter role authenticator in database ${database.name} reset all`);
    away = false;
    await keeper.reload();
    expect(applied.at(-1)).toMatchObject({ maxRows: null });
  });

  test("partially applied settings are reverted if the next ones are invalid", async () => {
    const keeper = await keep({}, listen());
    let away = true;
    const applied = await follow(keeper, async () => {
      if (away) throw new Error("the catalogue was read, and something else was away");
    });
    await say("pgrst.db_max_rows", "5");
    await expect(keeper.reload()).rejects.toThrow("something else was away");
    await say("pgrst.db_max_rows", "many");
    away = false;
    await keeper.reload();
    expect(applied.at(-1)).toMatchObject({ maxRows: null });
  });
});
