-- The metadata is what the administrator gives: a name that is not part of it is kept only where users have a table of their own. Each row of
-- users has an address, also that of an account with a phone number only.
create or replace function auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info)
returns bigint as $$
declare
  v_name constant text := attributes ->> 'name';
  v_email constant text := coalesce(attributes ->> 'email', gen_random_uuid() || '@phone.invalid');
  v_metadata constant jsonb := coalesce(attributes -> 'user_metadata', '{}');
  v_changes jsonb := attributes - '{id,name,email}'::text[];
  v_user_id bigint;
begin
  if exists (select from auth.users as account where account.phone = attributes ->> 'phone') then
    raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
  end if;
  if auth.find_user(v_email) is null then
    v_user_id := auth.register(v_name, v_email, null, null, create_account.password_hash, client_info, v_metadata) ->> 'id';
    v_changes := v_changes - 'user_metadata';
  else
    v_user_id := auth.add_account(v_name, v_email, 'authenticated', create_account.password_hash, client_info);
  end if;
  begin
    update auth.users as account set
        id = coalesce((attributes ->> 'id')::uuid, account.id),
        is_self_registered = false,
        verified_email = case when attributes ? 'email' and (attributes ->> 'email_confirm')::boolean then account.email end
      where account.user_id = v_user_id;
  exception when unique_violation then
    raise exception 'A user with this id exists already' using errcode = 'TAKEN', detail = 'id';
  end;
  if v_changes <> '{}' then
    perform auth.change_account(v_user_id, v_changes, null, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_account is 'Creates an account as an administrator, and returns its key.';
