create or replace function auth.pass_passkey(
  user_id bigint, passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_passkey.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.user_id is null then 'missing'
    when auth.is_disabled(v_account) then 'disabled'
    when not auth.use_passkey(passkey_id, counter, is_backed_up) then 'counter'
    else 'passed'
  end;
  if v_outcome = 'passed' then
    perform auth.log_event('passkey.signed_in', v_account.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  else
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_passkey is
  'The result of a sign-in with a passkey whose signature the service has verified: passed, or why it is refused.';
