import { expect, test } from "vitest";
import { readRowFunctionFindings } from "../../../operations/doctor/row-function-checks.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";

const FUNCTIONS = `
  create schema shop;
  create table shop.orders (id int primary key, "Buyer" text not null);
  insert into shop.orders values (1, 'Ann'), (2, 'RETURN $function$');
  create function shop.label(shop.orders) returns text language sql stable return 'RETURN $function$ ' || ($1)."Buyer";
  create function shop.all_orders(after_id int default 0) returns setof shop.orders language sql stable security definer
    begin atomic select orders from shop.orders where orders.id > after_id; end;
  create function shop.counted(list shop.orders[]) returns int language sql set search_path = shop return cardinality(list);
  create procedure shop.rename(changed shop.orders) language sql begin atomic
    update shop.orders set "Buyer" = 'Eve' where id = (changed).id;
    update shop.orders set "Buyer" = 'Bob' where id <> (changed).id;
  end;
  create function shop.is_table(class pg_class) returns boolean language sql return class.relkind = 'r';
  create function shop.plain(number int) returns int language sql return number + 1;
  create function shop.own(shop.orders) returns int language sql set search_path = '' as 'select $1.id';`;

const database = useDatabase({ template: "empty", sql: FUNCTIONS });
const migrated = useDatabase({ template: "platform" });

test("functions with a standard body that take or return rows are found, and replaced by ones that do the same", async () => {
  await withClient(database.ownerUrl, async (client) => {
    const calls = async () => {
      const { rows } = await client.query(
        `select shop.label(orders), shop.counted(array[orders, orders]) from shop.all_orders(1) as orders`,
      );
      return rows;
    };
    const before = await calls();
    expect(before).toEqual([{ label: "RETURN $function$ RETURN $function$", counted: 2 }]);
    const findings = await readRowFunctionFindings(client);
    expect(findings.map(({ problem }) => problem.split(" takes")[0])).toEqual([
      '"shop"."all_orders"(after_id integer)',
      '"shop"."counted"(list shop.orders[])',
      '"shop"."label"(shop.orders)',
      '"shop"."rename"(IN changed shop.orders)',
    ]);
    for (const { fix } of findings) await client.query(fix);
    expect(await readRowFunctionFindings(client)).toEqual([]);
    expect(await calls()).toEqual(before);
    await client.query("alter table shop.orders add column views int default 0");
    expect(await calls()).toEqual(before);
    await client.query("call shop.rename(row(1, 'Ann', 0)::shop.orders)");
    expect((await client.query('select "Buyer" as buyer from shop.orders order by id')).rows).toEqual([
      { buyer: "Eve" },
      { buyer: "Bob" },
    ]);
    const kept = await client.query("select prosecdef from pg_proc where proname = 'all_orders'");
    expect(kept.rows).toEqual([{ prosecdef: true }]);
  });
});

test("functions of the service on its own tables are not found, but those of a project on them are", async () => {
  await withClient(migrated.ownerUrl, async (client) => {
    const standard = `select from pg_proc join pg_namespace as schema on schema.oid = pronamespace
      where nspname = 'auth' and prosqlbody is not null and proname = 'find_oauth_session'`;
    expect((await client.query(standard)).rowCount).toBe(1);
    expect(await readRowFunctionFindings(client)).toEqual([]);
    await client.query("create function public.label(auth.users) returns text language sql return ($1).email");
    const findings = await readRowFunctionFindings(client);
    expect(findings.map(({ problem }) => problem.split(" takes")[0])).toEqual(['"public"."label"(auth.users)']);
  });
});
