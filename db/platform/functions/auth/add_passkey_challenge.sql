create or replace function auth.add_passkey_challenge(purpose text, user_id bigint, challenge text, seconds integer)
returns auth.mfa_challenges as $$
declare
  v_challenge auth.mfa_challenges;
begin
  insert into auth.mfa_challenges (purpose, user_id, challenge, expires_at)
    values (
      add_passkey_challenge.purpose, add_passkey_challenge.user_id, add_passkey_challenge.challenge,
      now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey_challenge is
  'Starts to register a passkey of that user, or to sign in with one, before it is known whose.';
