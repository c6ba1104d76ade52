-- Each call deletes a few expired challenges.
create or replace function auth.add_factor_challenge(
  user_id bigint, factor_id uuid, challenge text, seconds integer, client_info auth.client_info
) returns auth.mfa_challenges as $$
declare
  v_challenge auth.mfa_challenges;
begin
  update auth.mfa_factors as factor set last_challenged_at = now()
    where factor.id = factor_id and factor.user_id = add_factor_challenge.user_id;
  if not found then
    return null;
  end if;
  insert into auth.mfa_challenges (purpose, factor_id, user_id, challenge, address, expires_at)
    values (
      'factor', add_factor_challenge.factor_id, add_factor_challenge.user_id, add_factor_challenge.challenge,
      client_info.address, now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_factor_challenge is 'Starts to verify a factor of that user; null if there is no such factor.';
