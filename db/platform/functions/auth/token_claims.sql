-- The database's clock counts, whichever process signs. iat is in whole seconds: a token that replaces those just ended is dated to
-- tokens_valid_from.
create or replace function auth.token_claims(user_id bigint) returns jsonb
language sql
begin atomic
  select auth.claims_of(account.user_id) || jsonb_build_object(
    'iat', extract(epoch from greatest(date_trunc('second', clock_timestamp()), account.tokens_valid_from))::bigint
  )
  from auth.users as account where account.user_id = token_claims.user_id;
end;

comment on function auth.token_claims is 'The claims of an access token issued now.';
