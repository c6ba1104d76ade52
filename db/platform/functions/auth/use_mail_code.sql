-- Counts as an attempt to sign in, by the address that the client names and by where it is. Runs the same queries whether or not the
-- account exists.
create or replace function auth.use_mail_code(
  email text, code_hash bytea, purposes text[], client_info auth.client_info,
  out outcome text, out user_id bigint, out purpose text, out wait integer
) as $$
declare
  v_max_attempts constant integer := 5;
  v_counted_name constant text := 'code ' || left(email, 254);
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  -- A pending change names the new address. Of several accounts that change to it, the one whose code this is counts.
  select token.user_id into v_account.user_id from auth.mail_tokens as token
    where lower(token.email) = lower(use_mail_code.email) and token.purpose in ('email_change_new', 'phone_change')
      and token.purpose = any (purposes) and token.used_at is null
    order by token.code_hash is not distinct from use_mail_code.code_hash desc, token.created_at desc
    limit 1;
  if not found then
    select account.user_id into v_account.user_id from auth.users as account
      where case when 'sms' = any (purposes) then account.phone = use_mail_code.email else lower(account.email) = lower(use_mail_code.email) end;
  end if;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  wait := auth.count_attempt(
    v_counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
  if wait > 0 then
    outcome := 'wait';
    return;
  end if;
  select * into v_token from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
      and token.expires_at > clock_timestamp() and token.attempts < v_max_attempts
      and token.code_hash = use_mail_code.code_hash and auth.is_current_address(v_account, token)
    limit 1;
  if v_token.user_id is null then
    update auth.mail_tokens as token set attempts = token.attempts + 1
      where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
        and token.attempts < v_max_attempts;
    perform auth.end_attempt(v_counted_name, client_info.address, 'failed');
    outcome := 'expired';
    return;
  end if;
  perform auth.end_attempt(v_counted_name, client_info.address, 'passed');
  if auth.is_disabled(v_account) then
    outcome := 'disabled';
    return;
  end if;
  outcome := auth.confirm_mail_code(v_token, v_account, client_info);
  user_id := v_token.user_id;
  purpose := v_token.purpose;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_code is
  'Spends a code of six digits and locks the account: passed, half, or why not: expired, disabled, or wait for some seconds.';
