-- Asked for by the user who is signed in: the password of the account stays.
create or replace function auth.begin_verification(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(begin_verification.user_id);
  v_email text;
begin
  select profile.email into v_email from auth.profile_of(v_account.user_id) as profile;
  if v_email is null or lower(v_account.verified_email) = lower(v_email) then
    return null;
  end if;
  return auth.add_mail_token(
    token_hash, 'verify', v_account.user_id, v_email, seconds, jsonb_build_object('password_hash', v_account.password_hash)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_verification is
  'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';
