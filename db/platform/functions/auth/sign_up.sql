-- Administrators and operators create accounts by auth.create_account, auth.add_account and auth.import_account instead, whatever the setting.
create or replace function auth.sign_up(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null, is_anonymous boolean default false
) returns jsonb as $$
declare
  v_user jsonb;
begin
  if not auth.accepts_sign_ups() then
    raise exception 'Sign-ups are closed' using errcode = 'NSIGN', hint = 'Ask an administrator for an account.';
  end if;
  v_user := auth.register(
    sign_up.name, sign_up.email, sign_up.age, sign_up.username, sign_up.password_hash, sign_up.client_info,
    sign_up.user_metadata, sign_up.is_anonymous
  );
  update auth.users as account set is_self_registered = true where account.user_id = (v_user ->> 'id')::bigint;
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_up is
  'Creates an account for whoever asks for one, unless sign-ups are closed. Returns the row of the user.';
