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
