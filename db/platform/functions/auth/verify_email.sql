create or replace function auth.verify_email(token_hash bytea, client_info auth.client_info) returns bigint as $$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  v_account := auth.lock_account((select found.user_id from auth.find_mail_token(verify_email.token_hash, 'verify') as found));
  if v_account.user_id is null then
    return null;
  end if;
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash returning * into v_token;
  if not found then
    return null;
  end if;
  if lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, v_token, client_info);
  end if;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.verify_email is
  'Spends the token and marks the address as verified, which ends what was there before. Null: the token is invalid.';
