create or replace function auth.verify_email(token_hash bytea, client_info auth.client_info) returns bigint as $$
declare
  v_token record;
begin
  select * into v_token from auth.find_mail_token(verify_email.token_hash, 'verify');
  if not found then
    return null;
  end if;
  perform auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash;
  if not found then
    return null;
  end if;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.verify_email is
  'Spends the token and marks the address as verified. Null: the token is invalid.';
