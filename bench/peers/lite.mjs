// @supabase/lite on Postgres, by its own documentation ("Embedded", "Postgres backends").

import { serve } from "@hono/node-server";
import { App, getAuthSchemaSql } from "@supabase/lite";
import { createPostgresConnection } from "@supabase/lite/postgres";
import { parseSocketAddress } from "./socket-address.mjs";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;

const { url, host, port } = parseSocketAddress(DATABASE_URL);
const connection = createPostgresConnection({
  url,
  postgresOptions: { host, port, max: Number(POOL_SIZE), onnotice: () => {} },
});

// It looks up in its own table who the token speaks of.
await connection.driver.unsafe(getAuthSchemaSql());
await connection.driver`insert into auth.users (id) values ('00000000-0000-4000-8000-000000000001')`;

const app = new App({
  connection,
  auth: { enabled: true, jwt_secret: JWT_SECRET },
  options: { server: { apiKeys: false } },
});
// The first request makes the roles that are missing, and several at a time get into each other's way.
await app.fetch(new Request("http://localhost/rest/v1/items?limit=0"));
serve({
  port: Number(PORT),
  hostname: "127.0.0.1",
  fetch: (request, { incoming }) => app.fetch(request, { peerAddress: incoming.socket.remoteAddress ?? null }),
});
