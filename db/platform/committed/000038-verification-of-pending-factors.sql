--! Previous: sha1:4bec770e40b2f89c0fc9f63156f9e1ffbe05f4ea
--! Hash: sha1:a5cbb0ae6bf957df7c54a5b2299903d1f0a35bb2
--! Message: verification of pending factors

-- A pending factor does not replace a verified one.
--! Included auth/pass_factor.sql
-- The service has verified the code or the signature. The lock of the account serializes the rest: a challenge verifies one request,
-- and a code's time step must be new (RFC 6238 §5.2).
create or replace function auth.pass_factor(
  counted_name text, user_id bigint, session_id uuid, factor_id uuid, challenge_id uuid, step bigint,
  passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_factor.user_id);
  v_factor auth.mfa_factors;
  v_challenge auth.mfa_challenges;
  v_outcome text;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = pass_factor.factor_id and factor.user_id = v_account.user_id;
  select * into v_challenge from auth.mfa_challenges as challenge
    where challenge.id = challenge_id and challenge.factor_id = v_factor.id;
  v_outcome := case
    when v_factor.id is null or v_challenge.id is null then 'challenge'
    when v_challenge.expires_at <= clock_timestamp() then 'expired'
    when v_challenge.address is distinct from client_info.address then 'address'
    when auth.is_disabled(v_account) then 'disabled'
    -- Whoever has added this factor before the first one was verified may know the password alone.
    when v_factor.state = 'pending' and auth.has_factor(v_account.user_id)
      and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
    when v_factor.last_used_step >= step then 'code'
    when passkey_id is not null and not auth.use_passkey(passkey_id, counter, is_backed_up) then 'code'
    when not auth.raise_session(v_account.user_id, session_id, v_factor) then 'session'
    else 'passed'
  end;
  if v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome <> 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    delete from auth.mfa_challenges as challenge where challenge.id = v_challenge.id;
    update auth.mfa_factors as factor
      set state = 'enabled', enabled_at = coalesce(factor.enabled_at, now()), updated_at = now(),
        last_used_step = coalesce(step, factor.last_used_step)
      where factor.id = v_factor.id;
    delete from auth.mfa_factors as pending
      where pending.user_id = v_account.user_id and pending.state = 'pending' and pending.factor_type = v_factor.factor_type;
    perform auth.log_event(
      'factor.verified', v_account.user_id, client_info,
      jsonb_build_object('factor', v_factor.id, 'type', v_factor.factor_type)
    );
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_factor is
  'Verifies a factor for a sign-in by tokens, which rises to level 2: passed, or why it is refused. A pending factor is enabled.';
--! EndIncluded auth/pass_factor.sql
