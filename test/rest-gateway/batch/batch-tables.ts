import type pg from "pg";

/**
 * Tables with constraints, deferred ones too, a policy of children that reads their parent, and triggers. Ids are no sequences, since a failed insert
 * takes a number too.
 */
export const TABLES = `
  create schema hidden;
  grant usage on schema hidden to public;
  create function hidden.next_id(name text) returns int language plpgsql security definer as $$ declare free int; begin
    execute format('select coalesce(max(id), 0) + 1 from public.%I', name) into free;
    return free;
  end $$;
  create function hidden.me() returns int language sql stable
    as $$ select (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::int $$;
  create table public.customers (
    id int primary key default hidden.next_id('customers'), owner int default hidden.me(),
    name text not null unique check (length(name) <= 8), orders int not null default 0
  );
  create table public.orders (
    id int primary key default hidden.next_id('orders'), customer_id int not null references public.customers,
    total numeric not null check (total >= 0), note text
  );
  create index on public.orders (customer_id);
  create table public.links (id int primary key, next_id int references public.links deferrable initially deferred);
  create index on public.links (next_id);
  create table public.logs (id int primary key default hidden.next_id('logs'), what text not null);
  create function hidden.before_order() returns trigger language plpgsql as $$ begin
    if new.note = 'refuse' then raise exception 'Refused.' using errcode = 'PT418', detail = 'By the trigger.'; end if;
    if new.note = 'drop' then return null; end if;
    if new.note = 'change' then new.total := new.total + 1; end if;
    return new;
  end $$;
  create trigger before_order before insert or update on public.orders for each row execute function hidden.before_order();
  create function hidden.after_order() returns trigger language plpgsql security definer as $$ begin
    insert into public.logs (what) values (tg_op || ' ' || coalesce(new.id, old.id));
    update public.customers set orders = orders + 1 where id = new.customer_id;
    return null;
  end $$;
  create trigger after_order after insert or update or delete on public.orders for each row execute function hidden.after_order();
  create function public.add_order(customer int, total numeric) returns setof public.orders language sql volatile
    as 'insert into public.orders (customer_id, total, note) values (customer, total, ''called'') returning *';
  insert into public.customers (id, owner, name) values (1, 1, 'one'), (2, 1, 'two'), (3, 2, 'three'), (4, null, 'four');
  insert into public.orders (id, customer_id, total) values (1, 1, 10), (2, 1, 20.50), (3, 2, 30), (4, 3, 40);
  insert into public.links values (1, null), (2, 1);
  alter table public.customers enable row level security;
  alter table public.orders enable row level security;
  create policy mine on public.customers to authenticated using (owner = hidden.me());
  create policy open on public.customers for select to anon using (owner is null);
  create policy of_mine on public.orders to authenticated using (exists (select from public.customers c where c.id = customer_id));
  create policy of_open on public.orders to anon using (exists (select from public.customers c where c.id = customer_id));
  grant usage on schema public to anon, authenticated, service_role;
  grant all on public.customers, public.orders, public.links, public.logs to authenticated, service_role;
  revoke insert, update on public.customers from authenticated;
  grant insert (id, name, owner), update (name) on public.customers to authenticated;
  revoke insert on public.logs from authenticated;
  grant select on public.customers to anon;
  grant select, insert, update on public.orders, public.links to anon;
`;

/** Rows that one statement changes are logged in the order of the table's file, which may differ between databases. */
const LOGS = `
  select json_agg(what order by run, what)::text
  from (
    select *, sum(is_first::int) over (order by id) as run
    from (
      select id, what, split_part(what, ' ', 1) is distinct from lag(split_part(what, ' ', 1)) over (order by id) as is_first
      from public.logs
    ) as log
  ) as log`;

export const stateOf = async (owner: pg.Client) => {
  const tables = ["customers", "orders", "links"];
  const texts = tables.map((name) => `(select json_agg(t order by id)::text from public.${name} as t) as ${name}`);
  return (await owner.query(`select ${texts}, (${LOGS}) as logs`)).rows[0] as unknown;
};

export type Reference = { readonly $ref: string };

export function isReference(value: unknown): value is Reference {
  return typeof value === "object" && value !== null && "$ref" in value;
}

export type PartResponse = { readonly status: number; readonly body: unknown };

export function valueAt({ $ref }: Reference, responses: readonly PartResponse[]): unknown {
  const [part = "", pointer = ""] = $ref.split("#");
  let value: unknown = responses[Number(part)]!.body;
  for (const name of pointer.split("/").slice(1)) value = (value as Record<string, unknown> | null)?.[name];
  return value;
}
