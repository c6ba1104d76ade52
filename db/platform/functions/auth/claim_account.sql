-- Whoever proves an address or a number first may be another person than the one who entered it: nothing stays that was there before the proof.
-- The sign-up whose mail or message it was brings its password, name and metadata; other proofs leave none. The sign-in of the link that is being used stays.
create or replace function auth.claim_account(user_id bigint, proof auth.mail_tokens, client_info auth.client_info) returns void as $$
begin
  perform auth.claim_profile(claim_account.user_id, proof);
  update auth.users as account set
      password_hash = proof.password_hash, password_changed_at = clock_timestamp(),
      phone = case when proof.purpose in ('sms', 'sms_signup') then account.phone end,
      phone_confirmed_at = case when proof.purpose in ('sms', 'sms_signup') then account.phone_confirmed_at end
    where account.user_id = claim_account.user_id;
  perform auth.end_sign_ins(claim_account.user_id);
  delete from auth.identities as identity where identity.user_id = claim_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = claim_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = claim_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = claim_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = claim_account.user_id and key.revoked_at is null;
  delete from auth.mail_tokens as token where token.user_id = claim_account.user_id;
  delete from auth.flow_states as flow where flow.user_id = claim_account.user_id and flow.id is distinct from proof.flow_id;
  delete from auth.federation_states as state where state.user_id = claim_account.user_id;
  delete from auth.federation_logins as login where login.user_id = claim_account.user_id;
  delete from auth.federation_codes as code where code.user_id = claim_account.user_id;
  perform auth.log_event('account.claimed', claim_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.claim_account is
  'Ends all that an account had before the first proof of its address or number. The caller has locked the account.';
