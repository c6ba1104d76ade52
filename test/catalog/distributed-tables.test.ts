import { expect, test } from "vitest";
import { loadCatalog } from "../../catalog/load-catalog.ts";
import { CITUS, distribute, makeReference } from "../citus-catalog.ts";
import { useClient, useDatabase } from "../database.ts";

const database = useDatabase({
  template: "empty",
  sql: `
    ${CITUS}
    create table orders (id int, tenant int, primary key (tenant, id));
    create table products (id int primary key);
    create table of_coordinator (id int primary key);
    create table own (id int primary key);
    create view orders_of as select id as number, tenant as customer from orders;
    create view orders_by_number as select number from orders_of;
    ${distribute("orders", "tenant")}
    ${makeReference("products")}
    insert into pg_dist_partition values ('of_coordinator', 'n', null, 0, 's', true);`,
});
const owner = useClient(database.ownerUrl);

test("the catalogue knows how Citus stores the rows of tables and of those that views show", async () => {
  const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
  const { catalog } = await loadCatalog(owner, options);
  const distributionOf = (name: string) => catalog.findTable({ schema: "public", name })!.distribution;
  expect(distributionOf("orders")).toEqual({ kind: "by column", column: "tenant", colocation: 1 });
  expect(distributionOf("products")).toEqual({ kind: "reference", column: null, colocation: 2 });
  expect(distributionOf("of_coordinator")).toEqual({ kind: "local", column: null, colocation: 0 });
  expect(distributionOf("own")).toBeNull();
  expect(distributionOf("orders_of")).toEqual({ kind: "by column", column: "customer", colocation: 1 });
  expect(distributionOf("orders_by_number")).toEqual({ kind: "by column", column: null, colocation: 1 });
});
