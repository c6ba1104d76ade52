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
