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
