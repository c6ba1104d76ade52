-- Sign-ins by tokens that proved the password alone end: they may be those of somebody who knows no more.
create or replace function auth.raise_session(user_id bigint, session_id uuid, factor auth.mfa_factors) returns boolean as $$
begin
  if not auth.add_session_method(
    raise_session.user_id, raise_session.session_id,
    case factor.factor_type when 'webauthn' then 'mfa/webauthn' else factor.factor_type end, 2::smallint
  ) then
    return false;
  end if;
  update auth.token_sessions as session set factor_id = factor.id, requires_factor = false
    where session.id = raise_session.session_id;
  update auth.refresh_tokens as token set revoked_at = now()
    from auth.token_sessions as session
    where session.user_id = raise_session.user_id and session.aal < 2
      and token.family_id = session.id and token.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.raise_session is
  'Raises a sign-in by tokens to level 2 and ends those of level 1. False: it has ended. The caller has locked the account.';
