--! Previous: sha1:1afc488ac07aaddde883fc5ec8db0e1c97bd7491
--! Hash: sha1:029ed4e1754b315bf1a35df369b6068231480988
--! Message: administration on the platform

-- The administration of accounts without a table of users.
--! Included auth/create_account.sql
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
--! EndIncluded auth/create_account.sql
--! Included auth/delete_account.sql
-- A deletion that keeps the row removes what names the person, and every way to sign in.
create or replace function auth.delete_account(user_id bigint, keeps_row boolean, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(delete_account.user_id);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if keeps_row and v_account.deleted_at is not null then
    return true;
  end if;
  perform auth.log_event(
    'account.deletion_requested', v_account.user_id, client_info, jsonb_build_object('keeps_row', keeps_row)
  );
  if not keeps_row then
    perform auth.delete_user(v_account.user_id);
    return true;
  end if;
  perform auth.set_password(v_account.user_id, null);
  perform auth.set_email(v_account.user_id, 'deleted-' || v_account.id || '@deleted.invalid');
  perform auth.rename_user(v_account.user_id, 'Deleted user');
  update auth.users as account set
      username = account.email, verified_email = null, phone = null, phone_confirmed_at = null,
      raw_user_meta_data = '{}', raw_app_meta_data = '{}', deleted_at = clock_timestamp()
    where account.user_id = v_account.user_id;
  delete from auth.token_sessions as session where session.user_id = v_account.user_id;
  delete from auth.refresh_tokens as token where token.user_id = v_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = v_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = v_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = v_account.user_id;
  delete from auth.identities as identity where identity.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = v_account.user_id and key.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_account is 'Deletes an account as an administrator. False: there is none.';
--! EndIncluded auth/delete_account.sql
