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
