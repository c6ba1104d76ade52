import { expect, test } from "vitest";
import { serveGraphQL } from "../../graphql.ts";

/** The statement of a compiled operation calls the table `__orders__`. */
const TABLE = `
  create table public.orders (id integer primary key, "orders" text, "__orders__" text, "__orders_2" text);
  insert into public.orders values (1, 'one', 'two', 'three');
  create function public.label(orders public.orders) returns text stable language sql return 'order ' || (orders).id;
  create function public.equals("row" public.orders) returns setof public.orders stable language sql
    begin atomic select * from public.orders where id = ("row").id; end;
  grant select on public.orders to anon`;

test("functions of a row get the row, also if the table has a column that is named as its alias", async () => {
  const served = await serveGraphQL({ template: "empty", before: TABLE });
  try {
    const { data } = await served.ask("{ orders { edges { node { label equals { id label } } } } }");
    expect(data).toEqual({
      orders: { edges: [{ node: { label: "order 1", equals: [{ id: "1", label: "order 1" }] } }] },
    });
  } finally {
    await served.stop();
  }
});
