create or replace function auth.list_sign_ins(user_id bigint, id_hash bytea) returns table (
  family_id uuid, is_current boolean, signed_in_at timestamptz, last_used_at timestamptz, address inet, user_agent text
)
language sql stable
begin atomic
  select null::uuid, sessions.id_hash = list_sign_ins.id_hash, sessions.created_at, sessions.last_used_at,
    sessions.address, sessions.user_agent
  from auth.sessions
  where sessions.user_id = list_sign_ins.user_id and least(sessions.idle_expires_at, sessions.expires_at) > now()
  union all
  (
    select token.family_id, false, coalesce(token.signed_in_at, token.issued_at), token.issued_at, token.address, token.user_agent
    from auth.refresh_tokens as token
    where token.user_id = list_sign_ins.user_id and token.rotated_at is null and token.revoked_at is null
      and token.expires_at > now()
    order by token.issued_at desc
    limit 100
  );
end;

comment on function auth.list_sign_ins is
  'Where a user is signed in: the session of a browser, without family_id, and families of refresh tokens, of which the newest 100.';
