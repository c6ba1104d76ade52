create or replace function auth.use_reauthentication(user_id bigint, code_hash bytea, client_info auth.client_info)
returns boolean as $$
declare
  v_max_attempts constant integer := 5;
  v_account constant auth.users := auth.lock_account(use_reauthentication.user_id);
begin
  delete from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.expires_at > clock_timestamp()
      and token.attempts < v_max_attempts and token.code_hash = use_reauthentication.code_hash;
  if found then
    return true;
  end if;
  update auth.mail_tokens as token set attempts = token.attempts + 1
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.attempts < v_max_attempts;
  return false;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_reauthentication is 'Spends the code that a signed-in user confirms a change with; false if it is wrong.';
