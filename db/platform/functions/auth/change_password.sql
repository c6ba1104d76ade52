create or replace function auth.change_password(
  counted_name text, user_id bigint, old_hash text, new_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.credentials := auth.lock_account(change_password.user_id);
begin
  if v_account.password_hash is distinct from old_hash or v_account.disabled_at is not null then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  perform auth.set_password(v_account.user_id, new_hash);
  perform auth.log_event('password.changed', v_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of a user who has proved to know the old one, and ends the user''s other sign-ins.';
