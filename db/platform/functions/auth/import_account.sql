-- A row of Supabase's auth.users. Its id stays; an account that exists already stays as it is.
create or replace function auth.import_account(account jsonb, client_info auth.client_info) returns text as $$
declare
  v_email constant text := nullif(account ->> 'email', '');
  v_metadata constant jsonb := coalesce(nullif(account -> 'raw_user_meta_data', 'null'), '{}');
  v_name constant text := left(coalesce(
    nullif(btrim(v_metadata ->> 'name'), ''), nullif(btrim(v_metadata ->> 'full_name'), ''), split_part(v_email, '@', 1)
  ), 200);
  v_user record;
begin
  if v_email is null or account ->> 'deleted_at' is not null then
    return 'skipped';
  elsif auth.find_user(v_email) is not null
    or exists (select from auth.users where users.id = (account ->> 'id')::uuid)
  then
    return 'known';
  end if;
  v_user := auth.insert_user(v_name, v_email, null);
  insert into auth.users (
    user_id, id, username, email, password_hash, verified_email, raw_user_meta_data, raw_app_meta_data,
    phone, phone_confirmed_at, created_at, last_sign_in_at, invited_at, banned_until, is_sso_user
  ) values (
    v_user.user_id, (account ->> 'id')::uuid, v_email, v_email, nullif(account ->> 'encrypted_password', ''),
    case when account ->> 'email_confirmed_at' is not null then v_email end,
    v_metadata, coalesce(nullif(account -> 'raw_app_meta_data', 'null'), '{}') - '{provider,providers}'::text[],
    nullif(account ->> 'phone', ''), (account ->> 'phone_confirmed_at')::timestamptz,
    coalesce((account ->> 'created_at')::timestamptz, now()), (account ->> 'last_sign_in_at')::timestamptz,
    (account ->> 'invited_at')::timestamptz, (account ->> 'banned_until')::timestamptz,
    coalesce((account ->> 'is_sso_user')::boolean, false)
  );
  perform auth.log_event('account.created', v_user.user_id, client_info, '{"imported": true}');
  return 'imported';
exception when sqlstate 'WRONG' or sqlstate 'TAKEN' or unique_violation or check_violation then
  return 'refused';
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_account is
  'Creates an account from a row of another service: imported, known, skipped (deleted, or without an address) or refused.';
