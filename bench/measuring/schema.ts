/** The rows of the benchmarks: they have many owners, and RLS lets a caller see those of one owner. */
export const ITEMS = 200_000;
export const OWNERS = 200;
/** The caller of all benchmarks: the owner of every item whose id is divisible by OWNERS, and of two comments on each. */
export const CALLER = "00000000-0000-4000-8000-000000000001";

/** The roles of requests, and the schema of functions that policies call. */
const ROLES = `
  create role anon;
  create role authenticated;
  create role authenticator login noinherit;
  grant anon, authenticated to authenticator;
  create schema auth;
  grant usage on schema auth to anon, authenticated;
`;

/** The same, with the function that returns the claims. */
export const ROLES_WITH_CLAIMS = `${ROLES}
  create function auth.jwt() returns jsonb language sql stable
    return nullif(current_setting('request.jwt.claims', true), '')::jsonb;
`;

export const SCHEMA = `${ROLES}
  create function auth.uid() returns uuid stable language sql
    as $$ select (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid $$;

  create function owner_of(n bigint) returns uuid immutable language sql
    as $$ select ('00000000-0000-4000-8000-' || lpad((1 + n % ${OWNERS})::text, 12, '0'))::uuid $$;

  create table items (
    id bigint primary key,
    owner_id uuid not null default auth.uid(),
    title text not null,
    body text not null,
    created_at timestamptz not null default now()
  );
  create table comments (
    id bigint generated always as identity primary key,
    item_id bigint not null references items,
    owner_id uuid not null default auth.uid(),
    content text not null
  );
  create table events (
    id bigint generated always as identity primary key,
    owner_id uuid not null default auth.uid(),
    kind text not null,
    payload jsonb not null
  );
  insert into items select n, owner_of(n), 'Title ' || n, repeat('body ', 12) from generate_series(0, ${ITEMS - 1}) n;
  insert into comments (item_id, owner_id, content)
    select n % ${ITEMS}, owner_of(n % ${ITEMS}), 'comment ' || n from generate_series(1, ${2 * ITEMS}) n;
  create index on items (owner_id, id);
  create index on comments (owner_id, id);
  create index on comments (item_id);

  alter table items enable row level security;
  alter table comments enable row level security;
  alter table events enable row level security;
  create policy own on items using (owner_id = (select auth.uid()));
  create policy own on comments using (owner_id = (select auth.uid()));
  create policy own on events using (owner_id = (select auth.uid()));
  grant select, insert, update, delete on items, comments, events to authenticated;
`;
