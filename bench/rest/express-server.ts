// A handwritten server with Express and pg, as a competent engineer writes it: a pool, one transaction per request with the caller's
// role and claims set for the policies, and JSON made by Express. With PREPARED each statement has a name, so pg prepares it:
// few engineers do that, although it makes the server much faster.

import { createSecretKey } from "node:crypto";
import express, { type Request, type Response } from "express";
import jwt from "jsonwebtoken";
import pg from "pg";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE, PREPARED } = process.env;
const secret = createSecretKey(Buffer.from(JWT_SECRET!));
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL_SIZE) });
const app = express();
app.disable("x-powered-by");
app.use(express.json({ limit: "10mb" }));

async function asCaller(request: Request, query: pg.QueryConfig): Promise<pg.QueryResult> {
  const token = request.headers.authorization!.slice("Bearer ".length);
  const claims = jwt.verify(token, secret, { algorithms: ["HS256"] }) as jwt.JwtPayload;
  const client = await pool.connect();
  try {
    await client.query("begin");
    const settings = {
      name: "caller",
      text: "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)",
      values: [claims.role, JSON.stringify(claims)],
    };
    await client.query(prepared(settings));
    const result = await client.query(prepared(query));
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

function prepared({ name, ...query }: pg.QueryConfig): pg.QueryConfig {
  return PREPARED && name !== undefined ? { name, ...query } : query;
}

app.get("/items/:id", async (request: Request, response: Response) => {
  const { rows } = await asCaller(request, {
    name: "item",
    text: "select id, owner_id, title, body, created_at from items where id = $1",
    values: [request.params.id],
  });
  response.json(rows);
});

app.get("/items/:id/with-comments", async (request: Request, response: Response) => {
  const { rows } = await asCaller(request, {
    name: "item with comments",
    text: `select i.id, i.title, coalesce(json_agg(json_build_object('id', c.id, 'content', c.content))
      filter (where c.id is not null), '[]') as comments
      from items i left join comments c on c.item_id = i.id where i.id = $1 group by i.id`,
    values: [request.params.id],
  });
  response.json(rows);
});

app.get("/comments", async (request: Request, response: Response) => {
  const { rows } = await asCaller(request, {
    name: "comments with their items",
    text: `select c.id, c.content, json_build_object('id', i.id, 'title', i.title) as items
      from comments c left join items i on i.id = c.item_id where c.id > $1 order by c.id limit 20`,
    values: [request.query.after],
  });
  response.json(rows);
});

app.post("/events", async (request: Request, response: Response) => {
  const { kind, payload } = request.body;
  await asCaller(request, {
    name: "event",
    text: "insert into events (kind, payload) values ($1, $2)",
    values: [kind, payload],
  });
  response.status(201).end();
});

app.post("/events/many", async (request: Request, response: Response) => {
  const events: { kind: string; payload: object }[] = request.body;
  await asCaller(request, {
    name: "events",
    text: "insert into events (kind, payload) select * from unnest($1::text[], $2::jsonb[])",
    values: [events.map(({ kind }) => kind), events.map(({ payload }) => JSON.stringify(payload))],
  });
  response.status(201).end();
});

app.get("/", (_request: Request, response: Response) => void response.end());
app.listen(Number(PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit());
