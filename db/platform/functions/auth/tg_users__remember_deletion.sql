-- Runs as whoever deletes a user. Each call deletes a few records that no token can name any more.
create or replace function auth.tg_users__remember_deletion() returns trigger as $$
begin
  insert into auth.deleted_accounts (user_id) values (OLD.user_id)
    on conflict (user_id) do update set deleted_at = now();
  delete from auth.deleted_accounts where user_id in (
    select user_id from auth.deleted_accounts where deleted_at < now() - interval '1 day'
    order by deleted_at limit 10 for update skip locked
  );
  perform auth.log_event('account.deleted', OLD.user_id, null);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__remember_deletion is
  'After delete: records the account, whose tokens have ended.';
