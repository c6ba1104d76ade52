import pg from "pg";
import { expect, test } from "vitest";
import { makePublication } from "../../../realtime/changes/publication.ts";
import { CITUS, distribute } from "../../citus-catalog.ts";
import { useDatabase } from "../../database.ts";

const database = useDatabase({
  template: "empty",
  sql: `
    ${CITUS}
    create table orders (id int primary key);
    create table products (id int primary key);
    create publication changes for table orders, products;`,
});

test("a table that becomes distributed leaves the publication, and its digest changes", async () => {
  const pool = new pg.Pool({ connectionString: database.ownerUrl, max: 1 });
  const publication = makePublication(async (work) => {
    const client = await pool.connect();
    return work(client).finally(() => client.release());
  }, "changes");
  const names = async () => (await publication.members()).map(({ name }) => name).sort();

  const before = await publication.digest();
  expect([await names(), await publication.has("public", "orders")]).toEqual([["orders", "products"], true]);
  await pool.query(distribute("orders", "id"));
  expect([await names(), await publication.has("public", "orders")]).toEqual([["products"], false]);
  expect(await publication.digest()).not.toBe(before);
  await pool.end();
});
