import { randomUUID } from "node:crypto";
import pg from "pg";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

/** Nothing in it keeps a second order of the same from being made: each row is one effect. */
const SCHEMA = `
  create table public.orders (
    id int generated always as identity primary key,
    item text not null,
    pieces int not null default 1 check (pieces > 0)
  );
  create table public.stock (item text primary key, pieces int not null);
  insert into public.stock values ('tea', 10), ('salt', 10);

  create function public.order_item(item text) returns public.orders language sql volatile
    begin atomic insert into public.orders (item) values (order_item.item) returning *; end;
  create function public.order_slowly(item text, seconds float8) returns int language plpgsql as $$ begin
    insert into public.orders (item) values (order_slowly.item);
    perform pg_sleep(seconds);
    return (select count(*) from public.orders o where o.item = order_slowly.item);
  end $$;
  create function public.order_behind_salt(item text) returns void language plpgsql as $$ begin
    insert into public.orders (item) values (order_behind_salt.item);
    perform from public.stock s where s.item = 'salt' for update;
  end $$;
  create function public.order_strictly(item text) returns int language sql
    set default_transaction_isolation = 'repeatable read'
    as $$ insert into public.orders (item) values (item) returning id $$;
  create function public.order_teapot(item text) returns int language plpgsql as $$ begin
    insert into public.orders (item) values (order_teapot.item);
    perform set_config('response.status', '418', true),
      set_config('response.headers', '[{"X-Tea":"ready"},{"Set-Cookie":"a=1"},{"Set-Cookie":"b=2"}]', true);
    return 0;
  end $$;
  create function public.count_orders(item text) returns bigint language sql stable
    return (select count(*) from public.orders as o where o.item = count_orders.item);
  create function public.many_letters(n int) returns text language sql volatile return repeat('x', n);

  create function public.check_later() returns trigger language plpgsql as $$ begin
    if NEW.item = 'doomed' then raise exception 'never' using errcode = '23514'; end if;
    if NEW.item like '%checked%' then update public.orders set item = NEW.item || ' by ' || current_user where id = NEW.id; end if;
    return null;
  end $$;
  create constraint trigger check_later after insert on public.orders deferrable initially deferred
    for each row execute function public.check_later();

  grant select, insert, update, delete on public.orders, public.stock to anon, authenticated;
  grant execute on all functions in schema public to anon, authenticated;
`;

export type Shop = TestDatabase & {
  readonly owner: pg.Pool;
  /** Returns the number of orders of an item. */
  ordered(item: string): Promise<number>;
};

export async function openShop(): Promise<Shop> {
  const database = await cloneDatabase("content");
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  await owner.query(SCHEMA);
  return {
    ...database,
    owner,
    async ordered(item) {
      const { rows } = await owner.query("select count(*)::int as count from public.orders where item = $1", [item]);
      return rows[0].count;
    },
    async drop() {
      await owner.end();
      await database.drop();
    },
  };
}

/** A key that no other test uses, and an item to tell the test's orders by. */
export function newOrder(): { readonly item: string; readonly headers: { readonly "Idempotency-Key": string } } {
  return { item: `item ${randomUUID()}`, headers: { "Idempotency-Key": randomUUID() } };
}
