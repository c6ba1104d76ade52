create or replace function auth.change_email(
  token_hash bytea, client_info auth.client_info, out user_id bigint, out previous_email text
) as $$
declare
  v_token auth.mail_tokens;
  v_account auth.users;
begin
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = change_email.token_hash and token.purpose = 'change' and token.expires_at > now();
  v_account := auth.lock_address(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = v_token.token_hash;
  if not found or v_account.user_id is null or auth.is_disabled(v_account) then
    return;
  end if;
  select profile.email into previous_email from auth.profile_of(v_account.user_id) as profile;
  v_token.new_email := v_token.email;
  perform auth.apply_email_change(v_account, v_token, client_info);
  user_id := v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_email is
  'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';
