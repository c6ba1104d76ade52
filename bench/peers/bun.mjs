// The same by hand for Bun, with its own HTTP server and its own client of Postgres.

import { SQL } from "bun";
import jwt from "jsonwebtoken";
import { parseSocketAddress } from "./socket-address.mjs";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;
const { url, host, port } = parseSocketAddress(DATABASE_URL);
const sql = new SQL({ url, path: `${host}/.s.PGSQL.${port}`, max: Number(POOL_SIZE) });

async function asCaller({ headers }, query) {
  const token = headers.get("authorization").slice("Bearer ".length);
  const claims = jwt.verify(token, JWT_SECRET, { algorithms: ["HS256"] });
  return await sql.begin(async (transaction) => {
    const [, rows] = await Promise.all([
      transaction`select set_config('role', ${claims.role}, true),
        set_config('request.jwt.claims', ${JSON.stringify(claims)}, true)`,
      query(transaction),
    ]);
    return rows;
  });
}

const rowsOf = async (request, query) => Response.json(await asCaller(request, query));

async function inserted(request, query) {
  await asCaller(request, query);
  return new Response(null, { status: 201 });
}

const server = Bun.serve({
  port: Number(PORT),
  hostname: "127.0.0.1",
  routes: {
    "/": new Response(),
    "/items/:id": (request) =>
      rowsOf(
        request,
        (transaction) =>
          transaction`select id, owner_id, title, body, created_at from items where id = ${request.params.id}`,
      ),
    "/items/:id/with-comments": (request) =>
      rowsOf(
        request,
        (transaction) => transaction`select i.id, i.title,
          coalesce(json_agg(json_build_object('id', c.id, 'content', c.content)) filter (where c.id is not null), '[]') as comments
          from items i left join comments c on c.item_id = i.id where i.id = ${request.params.id} group by i.id`,
      ),
    "/comments": (request) => {
      const after = new URL(request.url).searchParams.get("after");
      return rowsOf(
        request,
        (transaction) => transaction`select c.id, c.content, json_build_object('id', i.id, 'title', i.title) as items
          from comments c left join items i on i.id = c.item_id where c.id > ${after} order by c.id limit 20`,
      );
    },
    "/events": {
      POST: async (request) => {
        const { kind, payload } = await request.json();
        return inserted(
          request,
          (transaction) => transaction`insert into events (kind, payload) values (${kind}, ${payload})`,
        );
      },
    },
    "/events/many": {
      POST: async (request) => {
        const events = await request.text();
        return inserted(
          request,
          (transaction) => transaction`insert into events (kind, payload)
            select kind, payload from json_to_recordset(${events}::text::json) as event(kind text, payload jsonb)`,
        );
      },
    },
  },
});
process.on("SIGTERM", () => server.stop(true).then(() => process.exit()));
