-- Tells that an address is taken, as auth.register does.
create or replace function auth.begin_email_change(
  user_id bigint, email text, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(begin_email_change.user_id);
  v_current text;
  v_message text;
begin
  select profile.email into v_current from auth.profile_of(v_account.user_id) as profile;
  select fault.message into v_message
    from auth.account_faults(null, begin_email_change.email, null, null) as fault where fault.field = 'email' limit 1;
  if v_message is not null then
    raise exception '%', v_message using errcode = 'WRONG', detail = 'email';
  elsif v_current = begin_email_change.email then
    raise exception 'This is your e-mail address already' using errcode = 'WRONG', detail = 'email';
  elsif auth.find_user(begin_email_change.email) <> begin_email_change.user_id then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  elsif auth.add_mail_token(
    token_hash, 'change', v_account.user_id, begin_email_change.email, seconds,
    jsonb_build_object('password_hash', v_account.password_hash)
  ) is null then
    raise exception 'An e-mail was sent within the last minute' using errcode = 'TOMNY', hint = 'Try again in a minute.';
  end if;
  perform auth.log_event('email.change_requested', v_account.user_id, client_info);
  return v_current;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_email_change is
  'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';
