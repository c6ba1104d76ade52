-- Spent by whoever shows it: a code without the right verifier has been seen by somebody else. The account is locked first, as when its
-- password is set, which deletes the code.
create or replace function auth.use_federation_code(
  code_hash bytea, code_challenge text, client_info auth.client_info, out outcome text, out user_id bigint
) as $$
declare
  v_account auth.users;
  v_code auth.federation_codes;
begin
  v_account := auth.lock_account((
    select codes.user_id from auth.federation_codes as codes where codes.code_hash = use_federation_code.code_hash
  ));
  delete from auth.federation_codes as code
    where code.code_hash = use_federation_code.code_hash
    returning * into v_code;
  if v_code.user_id is null or v_code.expires_at < now()
    or v_code.code_challenge is distinct from use_federation_code.code_challenge
  then
    perform auth.log_event('federation.refused', v_code.user_id, client_info, '{"reason":"code"}');
    outcome := 'wrong';
  elsif auth.is_disabled(v_account) then
    perform auth.log_event('login.refused', v_code.user_id, client_info, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_federation_code is 'The user of a code for tokens. Locks the account.';
