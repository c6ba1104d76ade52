// /users as its readers write it with Express and Drizzle, by Drizzle's documentation of row-level security: a transaction
// per request with the caller's role and claims.

import { createSecretKey } from "node:crypto";
import { asc, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import express from "express";
import jwt from "jsonwebtoken";
import pg from "pg";

const { PORT, DATABASE_URL, JWT_SECRET, POOL_SIZE } = process.env;
const secret = createSecretKey(Buffer.from(JWT_SECRET));
const database = drizzle(new pg.Pool({ connectionString: DATABASE_URL, max: Number(POOL_SIZE) }));

const users = pgTable("users", {
  id: bigint({ mode: "number" }).primaryKey(),
  name: text().notNull(),
  email: text().notNull(),
  age: integer(),
  created_at: timestamp({ withTimezone: true, mode: "string" }).notNull(),
  updated_at: timestamp({ withTimezone: true, mode: "string" }).notNull(),
});

function asCaller({ headers }, work) {
  const claims = jwt.verify(headers.authorization.slice("Bearer ".length), secret, { algorithms: ["HS256"] });
  return database.transaction(async (transaction) => {
    await transaction.execute(
      sql`select set_config('role', ${claims.role}, true), set_config('request.jwt.claims', ${JSON.stringify(claims)}, true)`,
    );
    return work(transaction);
  });
}

const app = express();
app.disable("x-powered-by");
app.get("/users", async (request, response) => {
  const { skip = 0, limit = 10 } = request.query;
  const rows = await asCaller(request, (transaction) =>
    transaction.select().from(users).orderBy(asc(users.id)).offset(Number(skip)).limit(Number(limit)),
  );
  response.json(rows);
});
app.get("/users/:id", async (request, response) => {
  const [user] = await asCaller(request, (transaction) =>
    transaction
      .select()
      .from(users)
      .where(eq(users.id, Number(request.params.id))),
  );
  if (user) response.json(user);
  else response.status(404).json({ error: { code: "USER_NOT_FOUND" } });
});
app.get("/", (_request, response) => void response.end());
app.listen(Number(PORT), "127.0.0.1");
process.on("SIGTERM", () => process.exit());
