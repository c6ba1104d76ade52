import type pg from "pg";
import { tokenFor } from "../../graphql.ts";

/**
 * Tables with everything that a write can meet: defaults, constraints, triggers, policies, privileges of columns, and views. Their ids are no
 * sequences: where only the result cannot be read, Grafast repeats the mutation, and a sequence then skips a number.
 */
export const TABLES = `
  create type public.mood as enum ('happy', 'very sad');
  create domain public.amount as numeric check (value > 0);
  create type public.pair as (first int, second text);
  create schema hidden;
  grant usage on schema hidden to public;
  create function hidden.next_id(name text) returns bigint language plpgsql security definer as $$ declare free bigint; begin
    execute format('select coalesce(max(id), 0) + 1 from public.%I', name) into free;
    return free;
  end $$;
  create table public.shops (id bigint default hidden.next_id('shops') primary key, name text unique, visits int not null default 0);
  create table public.items (
    id bigint default hidden.next_id('items') primary key, shop_id bigint references public.shops on delete cascade,
    label text not null default 'none' check (label <> '%'), code uuid unique, feeling public.mood default 'happy', worth public.amount,
    large int8, exact numeric(6, 2), double float8, flag boolean not null default true, at timestamptz, day date, data jsonb default '{"b": 1, "a": 2.50}',
    texts text[], wholes int[], feelings public.mood[], both_parts public.pair, padded char(4), span interval, secret text,
    length int generated always as (length(label)) stored
  );
  create index on public.items (shop_id);
  create table public.parts (
    item_id bigint not null references public.items on delete cascade, "kind of" text not null, "select" text, primary key (item_id, "kind of")
  );
  create table public.logs (id bigint default hidden.next_id('logs') primary key, what text, of_shop bigint references public.shops);
  create index on public.logs (of_shop);
  create table public.inbox (id bigint default hidden.next_id('inbox') primary key, text text not null default 'empty');
  create table public.owned (id int primary key, owner text not null default current_user, hidden boolean not null default false, shop_id bigint references public.shops);
  create index on public.owned (shop_id);
  create view public.labels as select id, label, flag from public.items where flag;
  create view public.ruled as select id, what from public.logs;
  create rule ruled_insert as on insert to public.ruled do instead (insert into public.logs (what) values (new.what); insert into public.logs (what) values ('ruled'));
  comment on view public.labels is '@primaryKey id';
  insert into public.shops (name) select 'shop ' || n from generate_series(1, 7) as n;
  insert into public.items (shop_id, label, secret, double) select 1 + n % 3, 'item ' || n, 'hidden', n / 3.0 from generate_series(1, 40) as n;
  insert into public.parts select n, 'a', 'b' from generate_series(1, 9) as n;
  insert into public.owned select n, (array['anon', 'authenticated'])[1 + n % 2], n = 3, n from generate_series(1, 7) as n;
  create function public.shout(item public.items, times int default 2) returns text language sql stable
    as 'select repeat(upper(item.label), times) || (select count(*) from public.items where shop_id = item.shop_id)';
  create function hidden.before() returns trigger language plpgsql as $$ begin
    if new.label = 'one' then return null; end if;
    if new.label = 'de' then raise exception 'No such label' using errcode = 'P0001', hint = 'Choose another.'; end if;
    if new.label = '' then raise exception 'Told by SQLSTATE' using errcode = 'PT402', detail = 'It is empty.'; end if;
    if new.label = 'summer' then new.label := 'winter'; end if;
    return new;
  end $$;
  create trigger before_items before insert or update on public.items for each row execute function hidden.before();
  create function hidden.after() returns trigger language plpgsql security definer as $$ begin
    update public.shops set visits = visits + 1 where id = new.shop_id;
    insert into public.logs (what, of_shop) values (tg_op || ' ' || new.label, new.shop_id);
    if new.large = 2 then update public.items set large = 3 where id = new.id; end if;
    return null;
  end $$;
  create trigger after_items after insert or update on public.items for each row execute function hidden.after();
  create function hidden.check_part() returns trigger language plpgsql as $$ begin
    raise exception 'Refused at commit' using errcode = '23514';
  end $$;
  create constraint trigger deferred_parts after insert or update on public.parts deferrable initially deferred for each row
    when (new."select" = 'a') execute function hidden.check_part();
  alter table public.owned enable row level security;
  create policy read_own on public.owned for select using (owner = current_user and not hidden);
  create policy write_own on public.owned using (owner = current_user) with check (owner = current_user);
  grant usage on schema public to anon, authenticated, service_role;
  grant select, insert, update, delete on all tables in schema public to authenticated, service_role;
  revoke select, insert, update on public.items from authenticated;
  grant select (id, shop_id, label, code, feeling, at, data, length, texts, large), insert (shop_id, label, code, worth, secret, at, data, texts, large),
    update (label, shop_id, feeling, data, texts, large, at) on public.items to authenticated;
  revoke select on public.inbox from authenticated;
  grant select, insert, update, delete on public.shops, public.owned to anon;
  grant insert on public.inbox, public.logs, public.parts to anon;
  grant execute on all functions in schema public to anon, authenticated, service_role;
`;

export const CALLERS_OF_TABLES = [
  ["anon", null],
  ["authenticated", tokenFor(1)],
  ["service_role", tokenFor(1, { role: "service_role" })],
] as const;

const VARYING = "array['created_at', 'updated_at', 'published_at', 'password_hash']";

/** Returns the rows of all tables, without the values that differ between two runs. */
export async function stateOf(owner: pg.Client): Promise<unknown> {
  const names =
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'public' order by 1";
  const tables = await owner.query<{ readonly name: string }>(names);
  const states = tables.rows.map(({ name }) => {
    return `select '${name}' as name, jsonb_agg(row order by row::text) as rows from (select to_jsonb(t) - ${VARYING} as row from ${name} as t) as r`;
  });
  return (await owner.query(states.join(" union all "))).rows;
}
