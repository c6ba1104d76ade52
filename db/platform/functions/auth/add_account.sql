-- For operators, who vouch for the address. A user row without an account gets one; an existing account stays as it is, because its
-- password belongs to somebody else.
create or replace function auth.add_account(
  name text, email text, role text, password_hash text, client_info auth.client_info
) returns bigint as $$
declare
  v_user_id bigint := auth.find_user(add_account.email);
begin
  if v_user_id is null then
    v_user_id := auth.register(name, email, null, null, password_hash, client_info) ->> 'id';
  else
    begin
      insert into auth.users (user_id, username, password_hash)
        values (v_user_id, add_account.email, add_account.password_hash);
    exception when unique_violation then
      raise exception 'This e-mail address already has an account' using errcode = 'TAKEN', detail = 'email';
    end;
    perform auth.log_event('account.created', v_user_id, client_info);
  end if;
  update auth.users as account set verified_email = add_account.email where user_id = v_user_id;
  if role <> 'authenticated' then
    perform auth.assign_role(v_user_id, role, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_account is 'Creates a user who can sign in, in that role and with a verified address.';
