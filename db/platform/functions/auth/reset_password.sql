create or replace function auth.reset_password(token_hash bytea, new_hash text, client_info auth.client_info) returns bigint as $$
declare
  v_token record;
  v_account auth.users;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  v_account := auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  -- An identity that was linked before may belong to somebody else: whoever created the account with this address before it was
  -- verified, or knew the password that is replaced.
  update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
  if v_account.user_id is not null and lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, null, client_info);
  end if;
  insert into auth.users (user_id, username)
    select v_token.user_id, v_token.email on conflict (user_id) do nothing;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.set_password(v_token.user_id, new_hash);
  perform auth.log_event('password.reset', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.reset_password is
  'Spends the token, sets the password and ends all sign-ins of the user. Null: the token is invalid.';
