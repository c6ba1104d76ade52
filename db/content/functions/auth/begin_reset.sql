-- The mail goes to the verified address: entering another address does not take over the account. Also for a user without a password
-- or without an account: whoever reads the mail is that user.
create or replace function auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info)
returns text as $$
declare
  v_user public.users;
  v_account auth.users;
  v_address text;
begin
  select * into v_user from public.users where lower(users.email) = lower(begin_reset.email) for key share;
  v_account := auth.lock_account(v_user.id);
  if v_user.id is null or auth.is_disabled(v_account) then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user.id, coalesce(v_account.verified_email, v_user.email), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user.id, client_info);
  end if;
  return v_address;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_reset is 'The address to send a password-reset token to; null when there is none.';
