import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { COMPILE_CACHE, startGateway, stopped } from "../program.ts";
import { REPOSITORY } from "../repository.ts";

/** The uses of large packages and modules of Node, which load them; the start is none of these. */
const NOT_AT_START = {
  "internal/deps/amaro/": "the stripping of types, which the compile cache keeps",
  "@dataplan/": "/graphql",
  "@modelcontextprotocol/": "/mcp",
  "@node-saml/": "sign-in by SAML",
  "@opentelemetry/exporter-trace-otlp-http/": "traces",
  "@opentelemetry/sdk-trace-base/": "traces",
  "@simplewebauthn/": "passkeys",
  "@tus/server/": "resumable uploads",
  "grafast/": "/graphql",
  "graphile-build": "/graphql",
  ...Object.fromEntries(
    ["compile/", "documents/", "operations/", "schemas/", "server/graphql", "server/request/", "server/socket/"].map(
      (path) => [`${REPOSITORY}/graphql/${path}`, "/graphql"],
    ),
  ),
  [`${REPOSITORY}/plugins/`]: "/graphql",
  "hash-wasm/": "checksums of S3",
  "node_modules/graphql/": "/graphql",
  "marked/": "the guide",
  "nodemailer/": "e-mails",
  "qrcode/": "second factors",
};

const database = useDatabase();

/** Starts until the compile cache has all modules: on a slow machine the service may load some more than at the start before. */
async function modulesAtCachedStart(): Promise<readonly string[]> {
  const cached = new Set<string>();
  for (;;) {
    const loaded = await modulesAtStart();
    const added = loaded.filter((name) => name.startsWith("file:") && !cached.has(name));
    if (added.length === 0) return loaded;
    for (const name of added) cached.add(name);
  }
}

/** The modules that a service has loaded while it started, by their addresses, and those of Node by their names. */
async function modulesAtStart(): Promise<readonly string[]> {
  const file = join(tmpdir(), `modules-${process.pid}.json`);
  // This is an address and not a file of TypeScript, for which Node would load the stripper of types.
  const hook = `import Module, { registerHooks } from "node:module";
    import { writeFileSync } from "node:fs";
    // This is no variable of the environment, with which Node would keep what it loads before the service enables the cache.
    process.env.NODE_COMPILE_CACHE = ${JSON.stringify(COMPILE_CACHE)};
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    process.on("SIGTERM", () => writeFileSync(${JSON.stringify(file)}, JSON.stringify([...loaded, ...process.moduleLoadList])));`;
  try {
    const gateway = await startGateway(database, {
      NODE_COMPILE_CACHE: undefined,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
    });
    await stopped(gateway, "SIGTERM");
    return JSON.parse(await readFile(file, "utf8"));
  } finally {
    await rm(file, { force: true });
  }
}

test("a start loads only what is needed until something is used", async () => {
  const loaded = await modulesAtCachedStart();
  expect(loaded.length).toBeGreaterThan(500);
  const needless = Object.keys(NOT_AT_START).filter((name) => loaded.some((module) => module.includes(name)));
  expect(needless).toEqual([]);
});
