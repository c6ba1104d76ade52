-- A wrong verifier does not end the sign-in: only the client that began it has the right one.
create or replace function auth.use_flow_code(
  code_hash bytea, verifier text, client_info auth.client_info,
  out outcome text, out user_id bigint, out method text, out sealed bytea
) as $$
declare
  v_account auth.users;
  v_flow auth.flow_states;
begin
  select flow.user_id into v_account.user_id from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_flow from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  outcome := case
    when v_flow.id is null or v_account.user_id is null then 'absent'
    when v_flow.expires_at <= clock_timestamp() then 'expired'
    when auth.is_disabled(v_account) then 'disabled'
    when v_flow.challenge is distinct from case v_flow.challenge_method
      when 'plain' then verifier
      else rtrim(translate(encode(sha256(convert_to(verifier, 'UTF8')), 'base64'), '+/', '-_'), '=')
    end then 'verifier'
    else 'passed'
  end;
  if outcome = 'passed' then
    user_id := v_flow.user_id;
    method := v_flow.method;
    sealed := v_flow.sealed;
  end if;
  if outcome in ('passed', 'expired') then
    delete from auth.flow_states as flow where flow.id = v_flow.id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_flow_code is
  'Spends a code for tokens and locks the account: passed, or why not: absent, expired, disabled, or another verifier.';
