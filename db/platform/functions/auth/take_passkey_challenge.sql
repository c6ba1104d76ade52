create or replace function auth.take_passkey_challenge(purpose text, user_id bigint, id uuid) returns auth.mfa_challenges as $$
  delete from auth.mfa_challenges as challenge
  where challenge.id = take_passkey_challenge.id and challenge.purpose = take_passkey_challenge.purpose
    and challenge.user_id is not distinct from take_passkey_challenge.user_id
  returning challenge.*;
$$ language sql set search_path = '';
comment on function auth.take_passkey_challenge is 'Returns a challenge once, also an expired one; null if there is none, or it was used.';
