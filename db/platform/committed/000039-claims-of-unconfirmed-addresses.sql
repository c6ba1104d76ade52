--! Previous: sha1:a5cbb0ae6bf957df7c54a5b2299903d1f0a35bb2
--! Hash: sha1:3dfca5b400a2aa00967604fd01a0e5c4982a4fff
--! Message: claims of unconfirmed addresses

--! Included auth/claim_account.sql
-- Second factors stay: a mailbox is no replacement for them. The sign-in of the link that is being used stays, too.
create or replace function auth.claim_account(user_id bigint, kept_flow uuid, client_info auth.client_info) returns void as $$
begin
  update auth.users as account set password_hash = null, password_changed_at = clock_timestamp()
    where account.user_id = claim_account.user_id;
  perform auth.end_sign_ins(claim_account.user_id);
  update auth.identities as identity set is_vouched = false where identity.user_id = claim_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = claim_account.user_id and passkey.factor_id is null;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = claim_account.user_id and key.revoked_at is null;
  delete from auth.mail_tokens as token where token.user_id = claim_account.user_id;
  delete from auth.flow_states as flow where flow.user_id = claim_account.user_id and flow.id is distinct from kept_flow;
  delete from auth.federation_states as state where state.user_id = claim_account.user_id;
  delete from auth.federation_logins as login where login.user_id = claim_account.user_id;
  delete from auth.federation_codes as code where code.user_id = claim_account.user_id;
  perform auth.log_event('account.claimed', claim_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.claim_account is
  'Ends what whoever registered an unconfirmed address could sign in with. The caller has locked the account.';
--! EndIncluded auth/claim_account.sql
--! Included auth/confirm_mail_code.sql
-- Whoever asks for a link to sign in, to set a password or by an invitation proves the address. What was set up before it was confirmed
-- belongs to whoever registered it, which may be somebody else. The mail of a sign-up confirms the password of this sign-up.
create or replace function auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info)
returns text as $$
begin
  if token.purpose in ('email_change_current', 'email_change_new') then
    update auth.mail_tokens as side set used_at = clock_timestamp(), code_hash = null where side.token_hash = token.token_hash;
    if exists (
      select from auth.mail_tokens as side
      where side.user_id = account.user_id and side.purpose in ('email_change_current', 'email_change_new')
        and side.used_at is null and side.expires_at > now()
    ) then
      return 'half';
    end if;
    perform auth.apply_email_change(account.user_id, token.new_email, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose = 'sms' then
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if token.purpose <> 'signup' and account.email_confirmed_at is null then
    perform auth.claim_account(account.user_id, token.flow_id, client_info);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  if account.email_confirmed_at is null then
    delete from auth.mail_tokens as spent where spent.user_id = account.user_id and spent.purpose in ('signup', 'verify', 'invite');
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';
--! EndIncluded auth/confirm_mail_code.sql
--! Included auth/reset_password.sql
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
  if v_account.user_id is not null and v_account.email_confirmed_at is null then
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
--! EndIncluded auth/reset_password.sql
