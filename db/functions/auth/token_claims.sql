-- Ours is the clock, whichever gateway signs. A token tells whole seconds only: the one that replaces those which were
-- ended a moment ago is dated to the moment from which tokens are valid.
create or replace function auth.token_claims(user_id bigint) returns jsonb
language sql
begin atomic
  select auth.claims_of(credentials.user_id) || jsonb_build_object(
    'iat', extract(epoch from greatest(date_trunc('second', clock_timestamp()), credentials.tokens_valid_from))::bigint
  )
  from auth.credentials where credentials.user_id = token_claims.user_id;
end;

comment on function auth.token_claims is 'The claims of an access token that is issued now.';
