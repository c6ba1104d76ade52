-- Also deletes links and codes to sign in, to set another password or another address, and everything in progress: identities being linked,
-- sign-ins that still need a code, and codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create or replace function auth.set_password(user_id bigint, new_hash text, kept_session uuid default null) returns void as $$
begin
  update auth.users as account set password_hash = new_hash, password_changed_at = clock_timestamp()
    where account.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id, kept_session);
  delete from auth.mail_tokens
    where mail_tokens.user_id = set_password.user_id and purpose not in ('verify', 'signup', 'invite');
  delete from auth.flow_states where flow_states.user_id = set_password.user_id;
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends all sign-ins of the user, except one by tokens. The caller has locked the account.';
