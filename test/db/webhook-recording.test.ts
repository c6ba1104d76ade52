import pg from "pg";
import { expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";

const ROWS = 60_000;

test("a statement that changes many rows is recorded in a session that has changed single rows before", async () => {
  const database = await cloneDatabase("platform");
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query("create table public.orders (id int primary key, number int not null)");
  await client.query(`insert into public.orders select id, 0 from generate_series(1, ${ROWS}) id`);
  await client.query(
    "insert into api.webhooks (name, table_name, url, role) values ('orders', 'public.orders', 'https://example.com', 'service_role')",
  );
  // From the sixth execution on, plans may be kept. One for a single row would compare each of many rows with each other.
  for (let id = 1; id <= 10; id++)
    await client.query("update public.orders set number = number + 1 where id = $1", [id]);
  await client.query("update public.orders set number = number + 1");
  const { rows } = await client.query(
    "select count(*)::int as count, count(*) filter (where old ->> 'id' = new ->> 'id')::int as paired from content_service.webhook_deliveries",
  );
  expect(rows).toEqual([{ count: ROWS + 10, paired: ROWS + 10 }]);
  await client.end();
  await database.drop();
});
