-- The mail goes to the verified address: entering another address does not take over the account. Also for a user without a password
-- or without an account: whoever reads the mail is that user.
create or replace function auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info)
returns text as $$
declare
  v_user_id constant bigint := auth.find_user(begin_reset.email);
  v_account auth.users;
  v_current text;
  v_address text;
begin
  v_account := auth.lock_account(v_user_id);
  select profile.email into v_current from auth.profile_of(v_user_id) as profile;
  if v_current is null or auth.is_disabled(v_account) then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user_id, coalesce(v_account.verified_email, v_current), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user_id, client_info);
  end if;
  return v_address;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_reset is 'The address to send a password-reset token to; null when there is none.';
