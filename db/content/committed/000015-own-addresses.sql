--! Previous: sha1:a3a1d80764b437c56f246b36bb6d9357ece29b19
--! Hash: sha1:40dbfa70a32309bc20313158ceedd17a4b0b1dd8
--! Message: own addresses

grant select on public.users to admin;
--! Included public/users_own_email.sql
create or replace function public.users_own_email(id bigint) returns text as $$
  select users.email from public.users where users.id = users_own_email.id and users.id = (select auth.uid());
$$ language sql stable parallel safe security definer set search_path = '';
grant execute on function public.users_own_email to authenticated, service_role;
comment on function public.users_own_email is
  e'@behavior -*\nThe address of the user, for the user; null for others.';
--! EndIncluded public/users_own_email.sql
--! Included public/me.sql
-- With the rights of the owner, because a caller may not select the address of other rows.
create or replace function public.me() returns public.users as $$
declare
  v_user public.users;
begin
  select users.* into v_user from public.users where users.id = (select auth.uid());
  if v_user.id is null then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$$ language plpgsql stable parallel safe security definer set search_path = '';
grant execute on function public.me to anon, authenticated, service_role;
comment on function public.me is e'@notNull\nThe user who is signed in.';
--! EndIncluded public/me.sql
--! Included auth/withhold_addresses.sql
-- The privilege on a whole table includes each column, so all others are granted one by one. One that is added later has no grant yet.
create or replace function auth.withhold_addresses() returns void as $$
begin
  revoke select on public.users from authenticated;
  execute format('grant select (%s) on public.users to authenticated', (
    select string_agg(quote_ident(attname), ', ') from pg_attribute
    where attrelid = 'public.users'::regclass and attnum > 0 and not attisdropped
      and coalesce(col_description(attrelid, attnum), '') !~ '(^|\n)@personal '
  ));
end;
$$ language plpgsql set search_path = '';
comment on function auth.withhold_addresses is
  'Lets signed-in callers select all columns of users but the address, of which they read their own by public.users_own_email.';
--! EndIncluded auth/withhold_addresses.sql
--! Included auth/set_users_access.sql
-- What is open beyond the rules of the tables is exactly what is created here, so that without it the rules are strict: a select policy
-- with "using (true)" decides alone, costs nothing per row and keeps every index usable. A table that a project has dropped is skipped.
create or replace function auth.set_users_access(access text) returns boolean as $$
declare
  v_table text;
begin
  if access is null or access not in ('open', 'owner') then
    raise exception 'USERS_ACCESS is open or owner' using errcode = '22023';
  end if;
  if auth.users_access() is not distinct from access or auth.users_access() is null then
    return false;
  end if;
  -- Several processes may start at the same time.
  perform pg_advisory_xact_lock(hashtextextended('auth.set_users_access', 0));

  foreach v_table in array '{users,articles,article_translations,comments}'::text[] loop
    continue when to_regclass('public.' || v_table) is null;
    execute format('drop policy if exists select_all on public.%I', v_table);
    if access = 'open' then
      execute format('create policy select_all on public.%I for select using (true)', v_table);
    end if;
  end loop;
  if to_regclass('public.comments') is not null then
    drop policy if exists insert_open on public.comments;
    if access = 'open' then
      create policy insert_open on public.comments for insert to authenticated
        with check (author_id = (select auth.uid()));
    end if;
  end if;
  if access = 'open' then
    grant select (email) on public.users to anon;
    grant select on public.users to authenticated;
  else
    revoke select (email) on public.users from anon;
    perform auth.withhold_addresses();
  end if;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_users_access is
  'Makes the policies and privileges those of USERS_ACCESS; returns whether they were others. Each start of the service calls it.';
--! EndIncluded auth/set_users_access.sql
comment on column public.users.email is e'@personal users_own_email\nUnique among users, whatever its case.';

do $$
begin
  if auth.users_access() = 'owner' then
    perform auth.withhold_addresses();
  end if;
end $$;
