// The code that a competent engineer writes with Fastify and postgres.js, by the latter's documentation: prepared statements, and the
// caller's role and claims sent in the same transaction without waiting for them.

import { createSecretKey } from "node:crypto";
import Fastify from "fastify";
import jwt from "jsonwebtoken";
import postgres from "postgres";
import { parseSocketAddress } from "./socket-address.mjs";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;
const secret = createSecretKey(Buffer.from(JWT_SECRET));
const { url, host, port } = parseSocketAddress(DATABASE_URL);
const sql = postgres(url, { host, port, max: Number(POOL_SIZE), onnotice: () => {} });

async function asCaller({ headers }, query) {
  const claims = jwt.verify(headers.authorization.slice("Bearer ".length), secret, { algorithms: ["HS256"] });
  const [, rows] = await sql.begin((transaction) => [
    transaction`select set_config('role', ${claims.role}, true),
      set_config('request.jwt.claims', ${JSON.stringify(claims)}, true)`,
    query(transaction),
  ]);
  return rows;
}

const app = Fastify({ bodyLimit: 10 * 2 ** 20 });

app.get("/items/:id", (request) =>
  asCaller(
    request,
    (transaction) =>
      transaction`select id, owner_id, title, body, created_at from items where id = ${request.params.id}`,
  ),
);

app.get("/items/:id/with-comments", (request) =>
  asCaller(
    request,
    (transaction) => transaction`select i.id, i.title,
      coalesce(json_agg(json_build_object('id', c.id, 'content', c.content)) filter (where c.id is not null), '[]') as comments
      from items i left join comments c on c.item_id = i.id where i.id = ${request.params.id} group by i.id`,
  ),
);

app.get("/comments", (request) =>
  asCaller(
    request,
    (transaction) => transaction`select c.id, c.content, json_build_object('id', i.id, 'title', i.title) as items
      from comments c left join items i on i.id = c.item_id where c.id > ${request.query.after} order by c.id limit 20`,
  ),
);

app.post("/events", async (request, reply) => {
  const { kind, payload } = request.body;
  await asCaller(
    request,
    (transaction) => transaction`insert into events (kind, payload) values (${kind}, ${payload})`,
  );
  return reply.code(201).send();
});

app.post("/events/many", async (request, reply) => {
  await asCaller(
    request,
    (transaction) => transaction`insert into events (kind, payload)
      select kind, payload from json_to_recordset(${request.body}) as event(kind text, payload jsonb)`,
  );
  return reply.code(201).send();
});

app.get("/", () => "");
await app.listen({ port: Number(PORT), host: "127.0.0.1" });
process.on("SIGTERM", () => process.exit());
