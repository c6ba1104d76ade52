create or replace function auth.has_factor(user_id bigint) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.mfa_factors as factor where factor.user_id = has_factor.user_id and factor.state = 'enabled'
  );
end;
comment on function auth.has_factor is 'Whether signing in requires a second factor.';
