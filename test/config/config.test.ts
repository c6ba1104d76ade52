import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  ConfigError,
  chooseWorkerCount,
  isEmbedded,
  readConfig,
  readProjectSettings,
  withDatabaseSettings,
} from "../../config/config.ts";
import { flag } from "../../config/setting-readers.ts";
import { NEW_SETTINGS, SETTINGS } from "../../config/settings.ts";
import { describeSettings, writeSettingsDocument } from "../../config/settings-document.ts";
import { SECRET } from "../secret.ts";

function problemsOf(environment: NodeJS.ProcessEnv): string {
  try {
    readConfig(environment);
    return "";
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
}

const GIB = 2 ** 30;

describe("the number of workers", () => {
  test.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [4, 2],
    [5, 2],
    [8, 4],
    [12, 6],
  ])("on %i cores is %i", (processors, workers) => {
    expect(chooseWorkerCount({ processors, memoryBytes: 64 * GIB }, { poolSize: 28 })).toBe(workers);
  });

  test("leaves each 768 MiB of memory and 4 connections", () => {
    expect(chooseWorkerCount({ processors: 64, memoryBytes: 2 * GIB }, { poolSize: 28 })).toBe(2);
    expect(chooseWorkerCount({ processors: 64, memoryBytes: GIB / 2 }, { poolSize: 28 })).toBe(1);
    expect(chooseWorkerCount({ processors: 64, memoryBytes: 64 * GIB }, { poolSize: 28 })).toBe(7);
    expect(chooseWorkerCount({ processors: 64, memoryBytes: 64 * GIB }, { poolSize: 200 })).toBe(32);
  });

  test("is that of WEB_CONCURRENCY unless it is auto", () => {
    expect(readConfig({ WEB_CONCURRENCY: "3" }).config.workers).toBe(3);
    expect(readConfig({ WEB_CONCURRENCY: "auto" }).config.workers).toBe(readConfig({}).config.workers);
    expect(problemsOf({ WEB_CONCURRENCY: "0" })).toContain(
      'WEB_CONCURRENCY must be auto or a whole number from 1 to 512, not "0"',
    );
  });
});

describe("readConfig", () => {
  test("an empty environment results in the documented defaults", () => {
    const { config, warnings } = readConfig({});
    expect(config).toMatchObject({
      port: 3000,
      host: "127.0.0.1",
      dataDir: ".data",
      anonRole: "anon",
      usersAccess: "open",
    });
    expect(isEmbedded(config)).toBe(true);
    expect(warnings).toEqual([]);
  });

  test("an empty value counts as unset", () => {
    expect(readConfig({ PORT: "", JWT_SECRET: "" }).config).toMatchObject({ port: 3000, jwtSecret: null });
  });

  test("PostgREST's names are accepted, and our own take precedence", () => {
    expect(readConfig({ PGRST_SERVER_PORT: "4000" }).config.port).toBe(4000);
    expect(readConfig({ PGRST_SERVER_PORT: "4000", PORT: "5000" }).config.port).toBe(5000);
    const taken = readConfig({ PGRST_DB_URI: "postgres://me@db/app", PGRST_JWT_SECRET: SECRET }).config;
    expect(taken).toMatchObject({ databaseUrl: "postgres://me@db/app", jwtSecret: SECRET });
  });

  test("all errors are reported at once, each with the name and the allowed values", () => {
    const problems = problemsOf({
      PORT: "eighty",
      DATABASE_URL: "mysql://db",
      JWT_SECRET: "short",
      ERROR_BODY: "xml",
      REST_SAFE_WRITES: "maybe",
      CORS_ORIGINS: "example.com",
      PGRST_JWT_ROLE_CLAIM_KEY: "role",
      ADMIN_EMAIL: "ada@example.com",
    });
    expect(problems.split("\n  ").slice(1)).toEqual([
      'PORT must be a whole number from 0 to 65535, not "eighty"',
      'CORS_ORIGINS must be * or origins such as https://app.example.com, not "example.com"',
      "DATABASE_URL must be a connection string like postgresql://user@host:5432/database",
      "JWT_SECRET must be at least 32 characters",
      'PGRST_JWT_ROLE_CLAIM_KEY must be a path such as .role or .app_metadata."user role"[0], not "role"',
      'REST_SAFE_WRITES must be true or false, not "maybe"',
      'ERROR_BODY must be one of nested, detail, flat, spring, not "xml"',
      "ADMIN_EMAIL and ADMIN_PASSWORD must be set together",
    ]);
  });

  test("readConfig does not ask for a DATABASE_URL that is set and cannot be used", () => {
    const owner = "postgres://owner@db/app";
    expect(problemsOf({ DATABASE_URL: "db", OWNER_DATABASE_URL: owner }).split("\n")).toHaveLength(2);
    expect(problemsOf({ OWNER_DATABASE_URL: owner })).toContain("must be set together with DATABASE_URL");
  });

  test.each(Object.values(SETTINGS).filter(({ read }) => refuses(read, "\u0000 no such value")))(
    "$names.0 refuses a value that it cannot read, by its name",
    ({ names }) => {
      expect(problemsOf({ [names[0]]: "\u0000 no such value" })).toContain(`${names[0]} must be `);
    },
  );

  test("a setting says that it is one of true and false by beginning with Whether, as the page says", () => {
    for (const { names, read, description } of Object.values(SETTINGS)) {
      expect([names[0], description.startsWith("Whether")]).toEqual([names[0], read === flag]);
    }
  });

  test.each(["FUNCTIONS", "GRAPHQL_PRELOAD", "STUDIO_SQL", "OAUTH_SERVER", "BACKUP_CHECK"])(
    "%s accepts true and on, false and off",
    (name) => {
      const [key] = Object.entries(SETTINGS).find(([, { names }]) => names[0] === name)!;
      const readFlag = (text: string) => readConfig({ [name]: text }).config[key as keyof typeof SETTINGS];
      expect(["true", "on", "false", "off"].map(readFlag)).toEqual([true, true, false, false]);
    },
  );

  test("the settings that the page calls new exist", () => {
    const names = Object.values(SETTINGS).map(({ names }) => names[0]);
    expect(NEW_SETTINGS.filter((name) => !names.includes(name))).toEqual([]);
  });

  test("a secret of PostgREST is read from the file that is named after an @, without the line break at its end", async () => {
    const folder = await mkdtemp(join(tmpdir(), "content-service-config-"));
    try {
      const [secret, url, missing] = ["secret", "url", "missing"].map((name) => join(folder, name)) as [
        string,
        string,
        string,
      ];
      await writeFile(secret, `${SECRET}\n`);
      await writeFile(url, "postgres://me@db/app");
      const read = { databaseUrl: "postgres://me@db/app", jwtSecret: SECRET };
      expect(readConfig({ PGRST_DB_URI: `@${url}`, PGRST_JWT_SECRET: `@${secret}` }).config).toMatchObject(read);
      expect(readConfig({ DATABASE_URL: `@${url}`, JWT_SECRET: `@${secret}` }).config).toMatchObject(read);
      expect(problemsOf({ JWT_SECRET: `@${missing}` })).toContain(
        `JWT_SECRET must be @ and the path of a file that can be read: ENOENT: no such file or directory, open '${missing}'`,
      );
      const { config } = readConfig({ ADMIN_EMAIL: "ada@example.org", ADMIN_PASSWORD: `@${secret}` });
      expect(config.adminPassword).toBe(`@${secret}`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("the database does not name files", () => {
    const settings = new Map([["pgrst.jwt_secret", "@/run/secrets/postgrest/jwt_secret"]]);
    expect(() => withDatabaseSettings(readConfig({}).config, settings)).toThrow("must be the secret itself");
  });

  test.each([
    " @/run/secrets/postgrest/jwt_secret",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ\n-----END PUBLIC KEY-----",
  ])("a publicly known secret, such as a PEM key or a file's name, is refused: %.20s", (secret) => {
    expect(problemsOf({ PGRST_JWT_SECRET: secret })).toContain("PGRST_JWT_SECRET must be the secret itself");
  });

  const base64 = (text: string) => Buffer.from(text).toString("base64");
  test.each([
    ["is no base64, and would stand for nothing", "!".repeat(40)],
    ["ends where base64 does, after a few letters", `secret=${"x".repeat(40)}`],
    ["stands for less than 32 bytes", base64("x".repeat(31))],
    ["stands for a key set, which others know", base64('{"keys":[{"kty":"RSA","n":"abc","e":"AQAB"}]}')],
  ])("a secret in base64 is refused that %s", (_what, secret) => {
    const environment = { JWT_SECRET: secret, PGRST_JWT_SECRET_IS_BASE64: "true" };
    expect(problemsOf(environment)).toContain("JWT_SECRET must be base64");
    const previous = { ...environment, JWT_SECRET: base64(SECRET), JWT_PREVIOUS_SECRETS: secret };
    expect(problemsOf(previous)).toMatch(/^ {2}JWT_PREVIOUS_SECRETS must be base64/m);
  });

  test.each([base64(SECRET), Buffer.from(SECRET).toString("base64url"), `${base64("\xff".repeat(16))}\n`])(
    "a secret in base64 is decoded: %j",
    (JWT_SECRET) => expect(problemsOf({ JWT_SECRET, PGRST_JWT_SECRET_IS_BASE64: "true" })).toBe(""),
  );

  test("a secret is checked as base64 if the database says so", () => {
    const { config } = readConfig({ JWT_SECRET: SECRET });
    const said = new Map([["pgrst.jwt_secret_is_base64", "true"]]);
    expect(() => withDatabaseSettings(config, said)).toThrow("JWT_SECRET must be base64");
  });

  test("a certificate and its key are set together", () => {
    expect(problemsOf({ HTTPS_CERT_FILE: "site.crt" })).toContain("HTTPS_CERT_FILE and HTTPS_KEY_FILE must be set");
    expect(problemsOf({ HTTPS_KEY_FILE: "site.key" })).toContain("HTTPS_CERT_FILE and HTTPS_KEY_FILE must be set");
    const { config } = readConfig({ HTTPS_CERT_FILE: "site.crt", HTTPS_KEY_FILE: "site.key" });
    expect(config.httpsKey).toBe("site.key");
  });

  test("the delay of a shutdown is a part of its time", () => {
    const message = "DRAIN_DELAY_SECONDS must be at most DRAIN_TIMEOUT_SECONDS";
    expect(problemsOf({ DRAIN_DELAY_SECONDS: "26" })).toContain(message);
    expect(problemsOf({ DRAIN_DELAY_SECONDS: "6", DRAIN_TIMEOUT_SECONDS: "5" })).toContain(message);
    expect(problemsOf({ DRAIN_DELAY_SECONDS: "6", DRAIN_TIMEOUT_SECONDS: "soon" })).not.toContain(message);
    const { config } = readConfig({ DRAIN_DELAY_SECONDS: "5", DRAIN_TIMEOUT_SECONDS: "5" });
    expect(config.drainDelay).toBe(5);
  });

  test("allowing only persisted operations requires a folder of them", () => {
    expect(problemsOf({ GRAPHQL_PERSISTED_ONLY: "true" })).toContain("GRAPHQL_PERSISTED_OPERATIONS must be set");
    const { config } = readConfig({ GRAPHQL_PERSISTED_ONLY: "true", GRAPHQL_PERSISTED_OPERATIONS: "operations" });
    expect(config.graphqlPersistedOnly).toBe(true);
  });

  test("a refused secret is not repeated", () => {
    expect(problemsOf({ JWT_SECRET: "hunter2" })).not.toContain("hunter2");
  });

  test("DATABASE_URL without a token key is refused: several processes must trust the same tokens", () => {
    expect(problemsOf({ DATABASE_URL: "postgres://db/app" })).toContain("JWT_SECRET");
    expect(problemsOf({ DATABASE_URL: "postgres://db/app", JWT_SECRET: SECRET })).toBe("");
    // It may be in the database, then.
    expect(problemsOf({ DATABASE_URL: "postgres://db/app", PGRST_DB_PRE_CONFIG: "private.settings" })).toBe("");
  });

  const databaseUrl = { DATABASE_URL: "postgres://db/app", JWT_SECRET: SECRET };
  test.each<[NodeJS.ProcessEnv, "open" | "owner", string]>([
    [{}, "open", "embedded Postgres on a loopback address"],
    [{ HOST: "localhost" }, "open", "embedded Postgres on a loopback address"],
    [{ HOST: "127.1.2.3" }, "open", "embedded Postgres on a loopback address"],
    [{ HOST: "::1", NODE_ENV: "test" }, "open", "embedded Postgres on a loopback address"],
    [{ HOST: "0.0.0.0" }, "owner", "HOST is 0.0.0.0"],
    [{ HOST: "::" }, "owner", "HOST is ::"],
    [{ HOST: "127.0.0.1.example.org" }, "owner", "HOST is 127.0.0.1.example.org"],
    [{ NODE_ENV: "production" }, "owner", "NODE_ENV is production"],
    [databaseUrl, "owner", "DATABASE_URL is set"],
    [
      { ...databaseUrl, HOST: "0.0.0.0", NODE_ENV: "production" },
      "owner",
      "DATABASE_URL is set, HOST is 0.0.0.0, NODE_ENV is production",
    ],
    [{ ...databaseUrl, USERS_ACCESS: "open" }, "open", "USERS_ACCESS"],
    [{ USERS_ACCESS: "owner" }, "owner", "USERS_ACCESS"],
  ])("with %j the access to users is %s, because: %s", (environment, usersAccess, usersAccessReason) => {
    expect(readConfig(environment).config).toMatchObject({ usersAccess, usersAccessReason });
  });

  test.each<[NodeJS.ProcessEnv, "open" | "administrators" | "off", boolean]>([
    [{}, "open", true],
    [{ HOST: "::1", PUBLIC_URL: "http://localhost:3000" }, "open", true],
    [{ HOST: "0.0.0.0" }, "administrators", false],
    [{ NODE_ENV: "production" }, "administrators", false],
    [databaseUrl, "administrators", false],
    [{ PUBLIC_URL: "https://api.example.com" }, "administrators", false],
    [{ TRUST_PROXY: "loopback" }, "administrators", false],
    [{ STUDIO: "administrators" }, "administrators", true],
    [{ STUDIO: "off", STUDIO_SQL: "off" }, "off", false],
    [{ ...databaseUrl, STUDIO: "open" }, "open", false],
    [{ ...databaseUrl, HOST: "0.0.0.0", STUDIO_SQL: "on" }, "administrators", true],
    [{ STUDIO_SQL: "false" }, "open", false],
  ])("with %j Studio is for: %s, and whether it runs SQL is %s", (environment, studio, studioSql) => {
    expect(readConfig(environment).config).toMatchObject({ studio, studioSql });
  });

  test.each<[NodeJS.ProcessEnv, boolean]>([
    [{}, true],
    [{ STUDIO: "administrators" }, true],
    [{ HOST: "0.0.0.0" }, false],
    [{ NODE_ENV: "production" }, false],
    [{ ...databaseUrl, STUDIO: "open" }, false],
    [{ PUBLIC_URL: "https://api.example.com" }, false],
    [{ TRUST_PROXY: "loopback" }, false],
  ])("with %j the service is a playground: %s", (environment, isPlayground) => {
    expect(readConfig(environment).config).toMatchObject({ isPlayground });
  });

  test.each<[NodeJS.ProcessEnv, "public" | "loopback" | "private"]>([
    [{}, "loopback"],
    [{ HOST: "0.0.0.0" }, "public"],
    [{ NODE_ENV: "production" }, "public"],
    [databaseUrl, "public"],
    [{ PUBLIC_URL: "https://api.example.com" }, "public"],
    [{ TRUST_PROXY: "loopback" }, "public"],
    [{ ...databaseUrl, WEBHOOK_NETWORK: "private" }, "private"],
    [{ WEBHOOK_NETWORK: "public" }, "public"],
  ])("with %j webhooks are sent to: %s", (environment, webhookNetwork) => {
    expect(readConfig(environment).config).toMatchObject({ webhookNetwork });
  });

  test.each<[NodeJS.ProcessEnv, string]>([
    [{ HOST: "0.0.0.0" }, "(HOST is 0.0.0.0)"],
    [{ PUBLIC_URL: "https://api.example.com" }, "(PUBLIC_URL is https://api.example.com)"],
    [{ NODE_ENV: "production", HOST: "::" }, "(HOST is ::, NODE_ENV is production)"],
  ])("an open Studio is refused with %j", (environment, reasons) => {
    const problem = `STUDIO must not be open where others can connect ${reasons}: set it to administrators`;
    expect(problemsOf({ ...environment, STUDIO: "open" })).toContain(problem);
  });

  test("a misspelt setting is warned about with the name that was meant", () => {
    const { warnings } = readConfig({
      DATABSE_URL: "x",
      PROT: "1",
      PGRST_DB_SCHEMA: "api",
      PGRST_NONSENSE: "1",
      HOME: "/",
    });
    expect(warnings).toEqual([
      "DATABSE_URL is not a setting; did you mean DATABASE_URL?",
      "PROT is not a setting; did you mean PORT?",
      "PGRST_DB_SCHEMA is not a setting; did you mean PGRST_DB_SCHEMAS?",
      "PGRST_NONSENSE is not a setting",
    ]);
  });

  test("a misspelt setting is reported with the missing ones, which may be the same", () => {
    expect(() => readConfig({ DATABASE_URL: "postgres://db/app", JWT_SECRT: "x".repeat(32) })).toThrow(
      /JWT_SECRET .* must be set .*\n {2}JWT_SECRT is not a setting; did you mean JWT_SECRET\?$/,
    );
  });

  test("a PostgREST setting without effect is reported with the reason", () => {
    const { config, warnings } = readConfig({ PGRST_DB_POOL: "1", PGRST_NO_SUCH_SETTING: "x" });
    expect([config.poolSize, warnings]).toEqual([
      4,
      [
        "PGRST_NO_SUCH_SETTING is not a setting",
        "DB_POOL is 1, and the service uses 4 connections, one for each of its pools",
      ],
    ]);
    expect(readConfig({ PGRST_DB_POOL_MAX_IDLETIME: "30" }).warnings).toEqual([
      "PGRST_DB_POOL_MAX_IDLETIME has no effect here: idle connections are closed automatically",
    ]);
  });

  test("a removed setting is reported as removed", () => {
    expect(readConfig({ CACHE: "true", CACHE_MB: "64", GRAPHQL_COMPILE: "off" }).warnings).toEqual([
      "CACHE was removed: results are not cached",
      "CACHE_MB was removed: results are not cached",
      "GRAPHQL_COMPILE was removed: operations run by SQL statements only",
    ]);
  });

  test("the admin port can be set by PostgREST's names too", () => {
    expect(readConfig({ PGRST_ADMIN_SERVER_PORT: "3001" }).config.adminPort).toBe(3001);
    expect(() => readConfig({ PORT: "3001", ADMIN_PORT: "3001" })).toThrow("ADMIN_PORT must be another port than PORT");
    expect(() => readConfig({ EMBEDDED_PORT: "3000" })).toThrow("EMBEDDED_PORT must be another port than PORT");
    expect(() => readConfig({ EMBEDDED_PORT: "3001", ADMIN_PORT: "3001" })).toThrow("another port than ADMIN_PORT");
  });

  test("PGRST_APP_SETTINGS_* become settings of SQL", () => {
    expect(readConfig({ PGRST_APP_SETTINGS_JWT_Audience: "x" }).config.appSettings).toEqual([
      ["app.settings.jwt_audience", "x"],
    ]);
  });

  test("the config cannot be changed", () => {
    expect(Object.isFrozen(readConfig({}).config)).toBe(true);
  });

  test("are read from a project's package.json, with neither unknown names nor secrets", () => {
    expect(readProjectSettings("{}")).toEqual({});
    const settings = { BASE_SCHEMA: "none", PORT: 8080 };
    expect(readProjectSettings(JSON.stringify({ "content-service": settings }))).toEqual({
      BASE_SCHEMA: "none",
      PORT: "8080",
    });
    const wrong = { PROT: 8080, JWT_SECRET: SECRET };
    expect(() => readProjectSettings(JSON.stringify({ "content-service": wrong }))).toThrow(
      /"PROT" is not a setting\n {2}JWT_SECRET is a secret/,
    );
  });
});

describe("describeSettings", () => {
  test("shows each value and its source, with secrets masked", () => {
    const text = describeSettings({ PGRST_SERVER_PORT: "4000", JWT_SECRET: SECRET });
    expect(text).toMatch(/^PORT=4000 +\(from PGRST_SERVER_PORT\)$/m);
    expect(text).toMatch(/^HOST=127\.0\.0\.1 +\(default\)$/m);
    expect(text).toMatch(/^JWT_SECRET=\*+ +\(set\)$/m);
    expect(text).toMatch(/^DATABASE_URL= +\(not set\)$/m);
    expect(text).not.toContain(SECRET);
  });

  test("settings of the database take precedence, and are marked as such", () => {
    const given = new Map([
      ["pgrst.db_max_rows", "5"],
      ["pgrst.db_schemas", ""],
      ["pgrst.jwt_secret", SECRET],
      ["pgrst.server_port", "1"],
    ]);
    const text = describeSettings({ PGRST_DB_MAX_ROWS: "100", PGRST_DB_SCHEMAS: "api", PORT: "4000" }, given);
    expect(text).toMatch(/^PGRST_DB_MAX_ROWS=5 +\(database\)$/m);
    expect(text).toMatch(/^PGRST_DB_SCHEMAS=public +\(database\)$/m);
    expect(text).toMatch(/^JWT_SECRET=\*+ +\(database\)$/m);
    expect(text).toMatch(/^PORT=4000 +\(set\)$/m);
    expect(text).not.toContain(SECRET);
  });
});

test("docs/settings.md is up to date (npm run config -- --markdown)", async () => {
  expect(await readFile("docs/settings.md", "utf8")).toBe(`${writeSettingsDocument()}\n`);
});

function refuses(read: (text: string) => unknown, text: string): boolean {
  try {
    read(text);
    return false;
  } catch {
    return true;
  }
}
