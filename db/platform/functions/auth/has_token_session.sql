create or replace function auth.has_token_session(user_id bigint, session_id uuid) returns boolean
language sql stable
return exists (
  select from auth.refresh_tokens as token
  where token.family_id = has_token_session.session_id and token.user_id = has_token_session.user_id
    and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
);

comment on function auth.has_token_session is 'Whether this sign-in by tokens of the user has not ended.';
